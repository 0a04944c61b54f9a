//! What is looked at across the documents and files of one apply: names and host ports that stand
//! twice.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use crate::domain::declared::{Port, Protocol};
use crate::domain::names::Key;
use crate::yaml::Flaws;
use crate::yaml::field::Field;

/// One apply while it is read.
#[derive(Default)]
pub struct Apply<'a> {
    /// Flaws of the present file.
    pub flaws: Flaws,
    file: &'a str,
    names: BTreeMap<Key, Place<'a>>,
    /// The workload that is being read, as far as its name is known.
    owner: Option<Rc<Key>>,
    ports: BTreeMap<Slot, PortPlace<'a>>,
}

#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a str,
    line: usize,
}

#[derive(Clone)]
struct PortPlace<'a> {
    place: Place<'a>,
    owner: Option<Rc<Key>>,
}

/// A host port under one protocol, seen from one side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    port: u16,
    protocol: Protocol,
    side: Side,
}

/// The sides from which two addresses can meet. Looking at every port of the same number instead
/// would be quadratic in a file made for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    /// One address.
    One(IpAddr),
    /// All addresses of one family; `true` for IPv6.
    Family(bool),
    /// All addresses.
    All,
    /// Anything of one family.
    InFamily(bool),
    /// Anything at all.
    InAll,
}

impl<'a> Apply<'a> {
    /// Goes on to the next file.
    pub fn begin(&mut self, file: &'a str) {
        self.file = file;
    }

    /// A document begins; its name is not known yet.
    pub fn begin_document(&mut self) {
        self.owner = None;
    }

    /// The name of the workload that is being read; refused where another one has it.
    pub fn claim_name(&mut self, field: &Field<'_>, key: &Key) -> bool {
        self.owner = Some(Rc::new(key.clone()));
        let place = Place { file: self.file, line: field.line() };
        match self.names.get(key) {
            Some(first) => {
                let message =
                    format_args!("{key} is declared already in {}:{}", first.file, first.line);
                field.refuse(&mut self.flaws, message);
                false
            }
            None => {
                self.names.insert(key.clone(), place);
                true
            }
        }
    }

    /// A port on the host; refused where this apply publishes it already.
    pub fn claim_port(&mut self, field: &Field<'_>, port: &Port) -> bool {
        let Some(number) = port.host_port else { return true };
        let slot = |side| Slot { port: number, protocol: port.protocol, side };
        let (taken, meets) = sides(port.host_ip);
        let first = meets.iter().find_map(|side| self.ports.get(&slot(*side)));
        let free = first.is_none();
        if let Some(first) = first {
            let protocol = port.protocol.as_str();
            let owner = first.owner.as_ref().map(|key| format!(" by {key}")).unwrap_or_default();
            let Place { file, line } = first.place;
            let message = format!(
                "host port {number}/{protocol} is published already{owner} in {file}:{line}"
            );
            field.refuse(&mut self.flaws, message);
        }
        let place = Place { file: self.file, line: field.line() };
        let claim = PortPlace { place, owner: self.owner.clone() };
        for side in taken {
            self.ports.entry(slot(side)).or_insert_with(|| claim.clone());
        }
        free
    }
}

/// The sides that an address takes, and those at which it meets another one.
fn sides(ip: Option<IpAddr>) -> (Vec<Side>, Vec<Side>) {
    use Side::{All, Family, InAll, InFamily, One};
    let Some(ip) = ip else {
        return (vec![All, InAll, InFamily(false), InFamily(true)], vec![InAll]);
    };
    let six = ip.is_ipv6();
    if ip.is_unspecified() {
        return (vec![Family(six), InFamily(six), InAll], vec![All, InFamily(six)]);
    }
    (vec![One(ip), InFamily(six), InAll], vec![All, Family(six), One(ip)])
}
