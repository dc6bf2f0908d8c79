//! Common parts of all services: a listener that can be interrupted, a set of connections with a
//! limit, and an HTTP server for metrics.

mod connections;
mod listener;
mod lock;
mod page;

pub use listener::{ListenAt, ListenError};

pub(crate) use connections::{ConnectionSlot, Connections};
pub use listener::Listener;
pub(crate) use lock::lock;
pub use page::TextPage;
