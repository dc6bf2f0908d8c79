//! Small network tools, most of which use linerate's own host: echo requests, traces, a wait for an
//! address by DHCP, and characters typed over a serial line. A further tool examines this machine.

#![forbid(unsafe_code)]

pub mod dhcp;
pub mod doctor;
pub mod ping;
pub mod trace;
mod turns;
pub mod typed;

pub use turns::ToolError;
