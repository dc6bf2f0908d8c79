//! The state of TCP Fast Open: the cache of a client (RFC 7413 §4.1.3), and the cookies of a
//! server. `listen/fast_open.rs` decides whether a cookie is accepted.

mod cache;
pub(crate) mod cookie;
mod lru_cache;

pub(crate) use cache::FastOpenCache;
