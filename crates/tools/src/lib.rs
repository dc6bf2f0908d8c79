//! Small network tools, most of which use linerate's own host. They send echo requests, trace
//! routes, wait for an address by DHCP, and type characters over a serial line. One more tool
//! examines this machine.

#![forbid(unsafe_code)]

pub mod dhcp;
pub mod doctor;
pub mod ping;
pub mod trace;
mod turns;
pub mod typed;

pub use turns::ToolError;
