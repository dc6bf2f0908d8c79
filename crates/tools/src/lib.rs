//! Small network tools: echo requests and traces from linerate's own host, an address for it by
//! DHCP, characters typed over a serial line, and an examination of this machine.

#![forbid(unsafe_code)]

pub mod dhcp;
pub mod doctor;
pub mod ping;
pub mod trace;
mod turns;
pub mod typed;

pub use turns::ToolError;
