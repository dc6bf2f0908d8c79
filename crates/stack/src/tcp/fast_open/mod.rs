//! What a client of TCP Fast Open brings, and what it remembers of servers (RFC 7413 §4.1.3). What a server
//! gives is made in `cookie`; whom it lets in stands in `listen/fast_open`.

mod cache;
pub(crate) mod cookie;
mod recent;

pub(crate) use cache::FastOpenCache;
