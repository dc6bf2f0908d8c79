//! Packet scripts in the language of packetdrill: segments of a peer, calls of an application, and
//! their expected results, on a time line.
//!
//! A script acts as the remote host, and as the application on the host under test.
//! [`run_on_stack`] tests linerate's own host, in virtual time. [`run_on_kernel`] tests the kernel
//! of this machine, behind a TUN device and in real time. Both functions return a [`Report`].
//!
//! ```
//! use linerate_script::{Options, Script, Verdict, run_on_stack};
//!
//! let script = Script::parse(
//!     "0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//!      +0  bind(3, ..., ...) = 0
//!      +0  listen(3, 1) = 0
//!      +0  < S 0:0(0) win 65535 <mss 1460>
//!      +0  > S. 0:0(0) ack 1 <...>
//!      +.1 < . 1:1(0) ack 1 win 65535
//!      +0  accept(3, ..., ...) = 4
//!      +0  write(4, ..., 1000) = 1000
//!      +0  > P. 1:1001(1000) ack 1
//!      +0  %{ assert tcpi_rtt == 100000 and tcpi_unacked == 1 }%",
//!     None,
//! )?;
//! let report = run_on_stack(&script, &Options::default());
//! assert_eq!(report.verdict, Verdict::Passed);
//! # Ok::<(), linerate_script::SyntaxError>(())
//! ```

#![forbid(unsafe_code)]

mod compare;
mod family;
mod files;
mod flows;
mod ip_packet;
mod kernel;
mod machine;
mod packet;
mod report;
mod run;
mod stack;
pub mod syntax;

pub use family::Family;
pub use files::{FileError, ScriptFile, ScriptFiles};
pub use kernel::{KernelError, run_on_kernel};
pub use report::{Deviation, Report, Traced, Verdict};
pub use run::Options;
pub use stack::run_on_stack;
pub use syntax::{Script, SyntaxError};
