//! Only a home for the tests in `tests/`, which run programs for tokio on three deterministic
//! networks. docs/book contains the guide for users of turmoil and turmoil-net.
