//! Answers: status, body, headers; and refusals in their one shape.

use serde::Serialize;
use serde_json::Value;

use super::backend::AskError;
use super::wire;
use crate::domain::declared::Problem;
use crate::domain::effect::Refusal;
use crate::domain::fault::{Fault, FaultKind};
use crate::limits;

/// An answer that is sent whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// JSON.
    pub body: Vec<u8>,
    /// Headers beside those of the body.
    pub headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// `body` as JSON under `status`.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        let body =
            serde_json::to_vec(body).expect("wire types have string keys and no failing parts");
        Self { status, body, headers: Vec::new() }
    }
}

/// What kind of refusal it is; each has one status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// The request itself is wrong.
    InvalidArgument,
    /// The request is well formed, the manifests in it are wrong.
    InvalidManifest,
    /// No such route, workload, task.
    NotFound,
    /// The route has other methods.
    MethodNotAllowed,
    /// Something stands in the way.
    Conflict,
    /// The body is too large.
    TooLarge,
    /// Too much waits already.
    Busy,
    /// A bug of ours.
    Internal,
    /// Something that it needs is away.
    Unavailable,
    /// The journal is being replayed; served soon.
    Recovering,
    /// No answer in time.
    Late,
}

impl Code {
    /// As it stands in the body.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument | Self::InvalidManifest => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::Conflict => "CONFLICT",
            Self::TooLarge => "TOO_LARGE",
            Self::Busy => "BUSY",
            Self::Internal => "INTERNAL",
            Self::Unavailable | Self::Recovering => "UNAVAILABLE",
            Self::Late => "LATE",
        }
    }

    /// Its HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidArgument => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::InvalidManifest => 422,
            Self::Busy => 429,
            Self::Internal => 500,
            Self::Unavailable | Self::Recovering => 503,
            Self::Late => 504,
        }
    }
}

/// A refusal.
#[derive(Clone, PartialEq, Debug)]
pub struct ApiError {
    /// Its kind.
    pub code: Code,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// Whatever a program may want to know beside it; null: nothing.
    pub details: Value,
    /// The methods that the route has, for 405.
    pub allow: &'static str,
}

impl ApiError {
    /// A refusal without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Value::Null, allow: "" }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// It is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// The journal is being replayed, and so many of its entries are done.
    pub fn recovering(done: usize, total: usize) -> Self {
        let progress = wire::Recovering { done, total };
        let message = format!(
            "recovering {progress}: until the journal is replayed, only it and the status are \
             served"
        );
        Self::new(Code::Recovering, message).with_details(&progress)
    }

    /// The same with details.
    pub fn with_details(mut self, details: &impl Serialize) -> Self {
        // By way of text: the code that writes a type is in the program already.
        let text = serde_json::to_string(details).unwrap_or_default();
        self.details = serde_json::from_str(&text).unwrap_or(Value::Null);
        self
    }

    /// The manifests are wrong, and this is all that is.
    pub fn problems(problems: &[Problem]) -> Self {
        let message = match problems {
            [only] => only.to_string(),
            _ => format!("the manifests have {} problems; nothing was applied", problems.len()),
        };
        let details: Vec<wire::Problem> = problems.iter().map(wire_problem).collect();
        Self::new(Code::InvalidManifest, message).with_details(&details)
    }
}

fn wire_problem(problem: &Problem) -> wire::Problem {
    wire::Problem {
        file: problem.file.clone(),
        line: problem.line,
        field: problem.field.clone(),
        message: problem.message.clone(),
    }
}

impl From<&ApiError> for Reply {
    fn from(error: &ApiError) -> Self {
        let body = wire::ErrorBody {
            error: wire::ErrorDetail {
                code: error.code.as_str().to_owned(),
                message: error.message.clone(),
                details: error.details.clone(),
            },
        };
        let mut reply = Reply::json(error.code.status(), &body);
        if matches!(error.code, Code::Busy | Code::Recovering) {
            reply.headers.push(("Retry-After", limits::RETRY_AFTER_S.to_string()));
        }
        if !error.allow.is_empty() {
            reply.headers.push(("Allow", error.allow.to_owned()));
        }
        reply
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Invalid(problems) => Self::problems(&problems),
            AskError::Refused(Refusal::NotFound(message)) => Self::not_found(message),
            AskError::Refused(Refusal::Conflict(message)) => Self::new(Code::Conflict, message),
            AskError::Refused(Refusal::Busy(message)) => Self::new(Code::Busy, message),
            AskError::Refused(Refusal::Store(message) | Refusal::Ending(message)) => {
                Self::new(Code::Unavailable, message)
            }
            AskError::Late => Self::new(
                Code::Late,
                "the agent did not answer in time; what was asked for may still be carried out",
            ),
            AskError::Unavailable(message) => Self::new(Code::Unavailable, message),
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let code = match fault.kind {
            FaultKind::NoContainer => Code::NotFound,
            FaultKind::Conflict => Code::Conflict,
            FaultKind::Timeout => Code::Late,
            _ => Code::Unavailable,
        };
        Self::new(code, fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(error: impl Into<ApiError>) -> (u16, String) {
        let reply = Reply::from(&error.into());
        (reply.status, String::from_utf8(reply.body).unwrap())
    }

    #[test]
    fn a_refusal_has_one_shape() {
        let (status, body) = status_of(ApiError::not_found("no task 7"));
        assert_eq!(status, 404);
        assert_eq!(body, r#"{"error":{"code":"NOT_FOUND","message":"no task 7"}}"#);
    }

    #[test]
    fn every_problem_of_a_manifest_is_told() {
        let problem = |line, field: &str| Problem {
            file: "web.yaml".into(),
            line,
            field: field.into(),
            message: "is not a port".into(),
        };
        let (status, body) =
            status_of(AskError::Invalid(vec![problem(3, "spec.ports[0]"), problem(0, "")]));
        assert_eq!(status, 422);
        assert_eq!(
            body,
            r#"{"error":{"code":"INVALID_ARGUMENT","message":"the manifests have 2 problems; "#
                .to_owned()
                + r#"nothing was applied","details":[{"field":"spec.ports[0]","#
                + r#""file":"web.yaml","line":3,"message":"is not a port"},"#
                + r#"{"file":"web.yaml","message":"is not a port"}]}}"#
        );
        assert!(status_of(AskError::Invalid(vec![problem(3, "a")])).1.contains("web.yaml:3: a: "));
    }

    #[test]
    fn refusals_of_the_agent_have_their_status() {
        let refused = |refusal| status_of(AskError::Refused(refusal)).0;
        assert_eq!(refused(Refusal::NotFound("x".into())), 404);
        assert_eq!(refused(Refusal::Conflict("x".into())), 409);
        assert_eq!(refused(Refusal::Busy("x".into())), 429);
        assert_eq!(refused(Refusal::Store("x".into())), 503);
        assert_eq!(refused(Refusal::Ending("x".into())), 503);
        assert_eq!(status_of(AskError::Late).0, 504);
        assert_eq!(status_of(AskError::Unavailable("x".into())).0, 503);
    }

    #[test]
    fn what_passes_says_when_to_come_back() {
        for error in [ApiError::new(Code::Busy, "x"), ApiError::recovering(3, 12)] {
            assert_eq!(Reply::from(&error).headers, [("Retry-After", "1".to_owned())]);
        }
        assert!(Reply::from(&ApiError::new(Code::Unavailable, "x")).headers.is_empty());
    }

    #[test]
    fn faults_of_the_engine_have_their_status() {
        let fault = |kind| status_of(Fault::new(kind, "read log", "abc", "gone")).0;
        assert_eq!(fault(FaultKind::NoContainer), 404);
        assert_eq!(fault(FaultKind::Timeout), 504);
        assert_eq!(fault(FaultKind::Away), 503);
    }
}
