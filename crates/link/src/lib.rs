//! Links that carry a host's frames.

#![deny(unsafe_code)]

mod bell;
mod clock;
pub mod memory;
#[allow(unsafe_code, reason = "memory shared between threads, and system calls that take raw memory")]
mod sys;
mod wait;

pub use clock::{ManualClock, MonotonicClock, time_of_day};
pub use memory::{MemoryConfig, MemoryLink};
pub use wait::{Doorbell, NoLink, Readiness, WaitError, Waiter, Wake};
