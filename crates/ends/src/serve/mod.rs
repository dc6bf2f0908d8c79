//! The common part of the services: an interruptible listener, and a limited set of connections.

mod connections;
mod listener;
mod lock;
mod page;

pub use listener::{ListenAt, ListenError};

pub(crate) use connections::{ConnectionSlot, Connections};
pub use listener::Listener;
pub(crate) use lock::lock;
pub use page::TextPage;
