//! The `linerate` command from outside: what it prints, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test may unwrap, and so may what it calls")]

mod doctor;
mod dump;
mod folder;
mod help;
mod network;
mod ping;
mod refusals;
mod script;
mod services;
mod sim;
mod support;
mod sweep;
