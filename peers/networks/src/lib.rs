//! An empty library, whose package contains the tests in `tests/`. These tests run programs for
//! tokio on three deterministic networks. docs/book contains a guide for users of turmoil and
//! turmoil-net.
