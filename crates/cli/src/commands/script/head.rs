//! Options that a script can set in its first lines, and that the command line can override.

use clap::Args;

/// The script options of the command line. They are appended to the options in each script, and so
/// override them.
#[derive(Debug, Args)]
pub(super) struct HeadArgs {
    /// Replace the word NAME with VALUE in every script
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// Tolerance of times, in microseconds
    #[arg(long = "tolerance_usecs", value_name = "COUNT")]
    tolerance_usecs: Option<u32>,
    /// Ignore PSH: stacks differ in where a burst ends
    #[arg(long = "ignore_push")]
    ignore_push: bool,
    /// Treat each segment of a script as one on the wire, even if it is larger than the peer's MSS
    #[arg(long = "strict_segments")]
    strict_segments: bool,
}

impl HeadArgs {
    /// Returns the given options as options of a script, such as `--define=NAME=VALUE`.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options: Vec<_> =
            self.define.iter().map(|definition| format!("--define={definition}")).collect();
        options.extend(self.tolerance_usecs.map(|micros| format!("--tolerance_usecs={micros}")));
        options.extend(self.ignore_push.then(|| "--ignore_push".to_owned()));
        options.extend(self.strict_segments.then(|| "--strict_segments".to_owned()));
        options
    }
}
