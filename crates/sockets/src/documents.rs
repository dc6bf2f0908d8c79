//! Compiles the programs of the README and of the book as documentation tests.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/book/src/embed.md")]
struct Embed;
