//! What may happen at the end of a transaction, for tests that say so.

use std::cell::RefCell;

use rusqlite::{Error, Transaction, ffi};

type Script = Box<dyn FnOnce(Transaction<'_>) -> rusqlite::Result<()>>;

thread_local! {
    static NEXT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

/// Ends a transaction: by the script of this thread if there is one, else by a commit.
pub(in crate::store) fn end(transaction: Transaction<'_>) -> rusqlite::Result<()> {
    match NEXT.take() {
        Some(script) => script(transaction),
        None => transaction.commit(),
    }
}

/// The next transaction on this thread ends in `script`.
pub(super) fn next(script: impl FnOnce(Transaction<'_>) -> rusqlite::Result<()> + 'static) {
    NEXT.set(Some(Box::new(script)));
}

/// Whether the script was used.
pub(super) fn is_over() -> bool {
    NEXT.with_borrow(Option::is_none)
}

/// The answer of a disk whose sync failed.
pub(super) fn sync_failed() -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None)
}
