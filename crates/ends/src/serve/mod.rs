//! What the services of the laboratory share: a listening socket that can be told to stop, and a
//! limited number of guests.

mod guests;
mod listener;
mod lock;

pub use listener::{ListenAt, ListenError};

pub(crate) use guests::{Guests, Place};
pub use listener::Listener;
pub(crate) use lock::lock;
