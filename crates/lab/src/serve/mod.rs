//! What the services of the laboratory share: a listening socket that can be told to stop, and a
//! limited number of guests.

mod guests;
mod listener;

pub use listener::{ListenAt, ListenError};

pub(crate) use guests::{Guests, Place};
pub(crate) use listener::Listener;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that panicked leaves what it held as it is; the others go on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
