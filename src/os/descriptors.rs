//! The limit of open files.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, at most `most`. Each idle connection to the
/// API holds two, and the API's accept loop does not survive running out of them. Where the limit
/// cannot be raised it stays as it is.
pub fn raise_limit(most: u64) {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    let wanted = hard.min(most);
    if wanted > soft {
        // Left as it is: the agent works, with room for fewer connections.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted, hard);
    }
}
