//! Values that carry their unit: points in time and spans, bit rates, amounts of bytes.
//!
//! Nothing in this crate concerns packets or the operating system. Arithmetic saturates instead of
//! wrapping. A deadline computed from hostile input can thus be too late, but never in the past.
//!
//! ```
//! use linerate_units::{Bytes, Duration, Instant, Rate};
//!
//! let rate: Rate = "10Mb/s".parse().unwrap();
//! let frame = Bytes::new(1_538); // with preamble and inter-frame gap
//! let sent = Instant::ZERO + rate.time_for(frame);
//! assert_eq!(sent - Instant::ZERO, Duration::from_nanos(1_230_400));
//! assert_eq!(rate.to_string(), "10.00 Mb/s");
//! ```

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod clock;
mod duration;
mod instant;
mod parse;
mod rate;
mod tick;

pub use bytes::Bytes;
pub use clock::Clock;
pub use duration::Duration;
pub use instant::Instant;
pub use parse::ParseUnitError;
pub use rate::Rate;
pub use tick::{Span, Tick};
