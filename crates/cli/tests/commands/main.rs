//! The `linerate` command from outside: what it prints, and how it ends.

mod services;
mod support;
