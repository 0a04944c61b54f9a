//! How answers are bent, and which.

use std::time::Duration;

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Route {
    /// `GET /_ping`
    Ping,
    /// `GET /version`
    Version,
    /// `GET /events`
    Events,
    /// `GET /containers/json`
    List,
    /// `POST /containers/create`
    Create,
    /// `GET /containers/{id}/json`
    Inspect,
    /// `GET /containers/{id}/logs`
    Logs,
    /// `POST /containers/{id}/start`
    Start,
    /// `POST /containers/{id}/kill`
    Kill,
    /// `DELETE /containers/{id}`
    Remove,
    /// `POST /networks/create`
    MakeNetwork,
    /// `POST /networks/{name}/connect`
    JoinNetwork,
    /// `GET /networks`
    ListNetworks,
    /// `DELETE /networks/{name}`
    RemoveNetwork,
    /// `POST /images/create`
    Pull,
    /// `GET /images/{name}/json`
    Image,
    /// `GET /info`
    Info,
    /// Anything else.
    Other,
}

/// What becomes of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bend {
    /// Not carried out; no answer before the bends change, and then the connection ends.
    Hang,
    /// Carried out only once the bends change, whoever still waits for it; the connection ends
    /// without an answer.
    Postponed,
    /// Carried out; the answer breaks off in the middle.
    Half,
    /// Not carried out; what comes is no HTTP.
    Garbage,
    /// Carried out; the connection ends without an answer.
    Lost,
    /// Not carried out; answered with this status.
    Status(u16),
    /// Not carried out; answered with 200 and this text.
    Body(String),
    /// Not carried out; answered with this status and this text.
    Answer(u16, String),
    /// Carried out at once; answered after this time.
    Late(Duration),
    /// Of a pull: it begins to bring something, and then tells over and over that it waits, until
    /// the client leaves or the bends change; the connection ends then.
    Dally,
    /// Of a create: just before it, somebody else makes a container of the same name.
    NameTaken,
}

/// Bends the answers that it is for.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `None`: of every kind.
    pub route: Option<Route>,
    /// Part of the container's name; empty: any.
    pub object: String,
    /// How.
    pub bend: Bend,
    /// For how many answers; `None`: until the bends change.
    pub left: Option<usize>,
}

impl Rule {
    /// Whether the rule is for a request about `name`. One that is used up is for none.
    pub fn is_for(&self, route: Route, name: &str) -> bool {
        self.left != Some(0)
            && self.route.is_none_or(|wanted| wanted == route)
            && name.contains(&self.object)
    }
}
