//! The hosts that a script can examine.

use crate::output::Failure;
use clap::ValueEnum;
use linerate_link::namespace::enter_private_network;
use linerate_script::{Options, Report, ScriptFile, run_on_kernel, run_on_stack};
use linerate_units::Duration;

/// Which host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Against {
    /// linerate's own, in virtual time
    Stack,
    /// This machine's kernel, in real time
    Kernel,
}

impl Against {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Kernel => "kernel",
        }
    }

    /// To be called once, before anything is run: the kernel needs a place of its own.
    pub(super) fn prepare(self) -> Result<(), Failure> {
        match self {
            Self::Stack => Ok(()),
            Self::Kernel => {
                enter_private_network().map_err(|error| Failure::input(error.to_string()))
            }
        }
    }

    /// Would a script take longer than somebody wants to wait? Virtual time is never waited for.
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
