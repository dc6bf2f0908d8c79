//! Tests of the `linerate` command: output, files and exit codes.

#![allow(clippy::unwrap_used, reason = "test helpers unwrap as tests do")]

mod compare;
mod doctor;
mod dump;
mod folder;
mod gateway;
mod help;
mod network;
mod ping;
mod refusals;
mod report;
mod script;
mod services;
mod sim;
mod support;
mod sweep;
mod trace;
mod why;
