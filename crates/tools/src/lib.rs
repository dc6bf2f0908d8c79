//! Small tools: echo requests from linerate's own host, and an examination of this machine.

#![forbid(unsafe_code)]

pub mod doctor;
pub mod ping;
