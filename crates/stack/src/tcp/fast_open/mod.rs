//! The state of TCP Fast Open: the cache of a client (RFC 7413 §4.1.3), and the cookies of a server
//! (RFC 7413 §4.1.2). The limit of pending connections is in `listen/fast_open.rs`.

mod cache;
pub(crate) mod cookie;
mod lru_cache;

pub(crate) use cache::FastOpenCache;
