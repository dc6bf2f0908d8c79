//! This library is empty. Its package exists for the tests in `tests/`, which run programs for
//! tokio on three deterministic networks. docs/book contains a guide for users of turmoil and
//! turmoil-net.
