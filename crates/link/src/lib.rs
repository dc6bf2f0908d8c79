//! Links that carry a host's frames.

#![deny(unsafe_code)]

mod bell;
mod capture;
pub mod capture_file;
mod clock;
pub mod impair;
pub mod kernel_interface;
pub mod kernel_tcp;
pub mod memory;
pub mod namespace;
#[allow(unsafe_code, reason = "memory shared between threads, and system calls that take raw memory")]
mod sys;
pub mod tap;
mod wait;

pub use capture::Capture;
pub use clock::{ManualClock, MonotonicClock, time_of_day};
pub use impair::{Impair, Impairments};
pub use kernel_interface::KernelInterface;
pub use memory::{MemoryConfig, MemoryLink};
pub use tap::{Tap, TapConfig};
pub use wait::{Doorbell, NoLink, Readiness, WaitError, Waiter, Wake};
