//! The tests in `tests/` run programs for tokio on three deterministic networks. docs/book has the
//! guide for users of turmoil and turmoil-net.
