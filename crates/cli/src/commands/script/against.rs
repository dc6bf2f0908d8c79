//! The hosts that a packet script can test: linerate's and the kernel's.

use crate::output::Failure;
use clap::ValueEnum;
use linerate_link::namespace::enter_private_network;
use linerate_script::{Options, Report, ScriptFile, run_on_kernel, run_on_stack};
use linerate_units::Duration;

/// A host under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Against {
    /// linerate's host, in virtual time
    Stack,
    /// The kernel of this machine, in real time
    Kernel,
}

impl Against {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Kernel => "kernel",
        }
    }

    /// Prepares the process for running scripts. To test the kernel, it enters a private network
    /// namespace.
    pub(super) fn prepare(self) -> Result<(), Failure> {
        match self {
            Self::Stack => Ok(()),
            Self::Kernel => {
                enter_private_network().map_err(|error| Failure::input(error.to_string()))
            }
        }
    }

    /// Does a script take more real time than `longest`? Only a script against the kernel can.
    /// Against linerate's host, a script runs in virtual time.
    pub(super) fn is_too_long(self, file: &ScriptFile, longest: Duration) -> bool {
        self == Self::Kernel && file.script.least_time() > longest
    }

    pub(super) fn run(self, file: &ScriptFile, options: Options) -> Result<Report, Failure> {
        match self {
            Self::Stack => Ok(run_on_stack(&file.script, &options)),
            Self::Kernel => run_on_kernel(&file.script, &options)
                .map_err(|error| Failure::input(error.to_string())),
        }
    }
}
