//! Options that scripts also have at their heads, given to all scripts of a command.

use clap::Args;

/// They follow, and so overrule, the options at the head of each script.
#[derive(Debug, Args)]
pub(super) struct HeadArgs {
    /// Replace the word NAME by VALUE in every script
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// Microseconds that a moment may be off
    #[arg(long = "tolerance_usecs", value_name = "COUNT")]
    tolerance_usecs: Option<u32>,
    /// Do not judge PSH: stacks differ in where a burst ends
    #[arg(long = "ignore_push")]
    ignore_push: bool,
    /// Take each segment of a script for one on the wire, also where it is larger than the peer's
    /// MSS
    #[arg(long = "strict_segments")]
    strict_segments: bool,
}

impl HeadArgs {
    /// The options as a script writes them.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options: Vec<_> =
            self.define.iter().map(|definition| format!("--define={definition}")).collect();
        options.extend(self.tolerance_usecs.map(|micros| format!("--tolerance_usecs={micros}")));
        options.extend(self.ignore_push.then(|| "--ignore_push".to_owned()));
        options.extend(self.strict_segments.then(|| "--strict_segments".to_owned()));
        options
    }
}
