//! Small tools: echo requests from linerate's own host, and a doctor that says what this machine
//! can do.

#![forbid(unsafe_code)]

pub mod doctor;
pub mod ping;
