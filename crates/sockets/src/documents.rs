//! Makes rustdoc compile and run the example programs in the README and in the book.

#[doc = include_str!("../../../README.md")]
struct Readme;

#[doc = include_str!("../../../docs/book/src/embed.md")]
struct Embed;
