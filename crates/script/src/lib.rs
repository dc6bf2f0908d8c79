//! Packet scripts: a peer's segments, an application's calls and what has to follow from them, in
//! the timeline language that TCP engineers know from packetdrill.
//!
//! A script is the remote host and the application of one host. That host is linerate's own, whole,
//! in virtual time ([`run_on_stack`]), or the kernel of this machine behind a TUN device, in real
//! time ([`run_on_kernel`]). Each says the same of what it finds: a [`Report`].
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
mod files;
mod flows;
mod kernel;
mod machine;
mod packet;
mod report;
mod run;
mod stack;
pub mod syntax;

pub use files::{FileError, ScriptFile, ScriptFiles};
pub use kernel::{KernelError, run_on_kernel};
pub use report::{Deviation, Report, Traced, Verdict};
pub use run::Options;
pub use stack::run_on_stack;
pub use syntax::{Script, SyntaxError};
