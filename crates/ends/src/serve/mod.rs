//! Common parts of all services: an interruptible listener, a limited set of connections, a text
//! page.

mod connections;
mod listener;
mod lock;
mod page;

pub use listener::{ListenAt, ListenError};

pub(crate) use connections::{ConnectionSlot, Connections};
pub use listener::Listener;
pub(crate) use lock::lock;
pub use page::TextPage;
