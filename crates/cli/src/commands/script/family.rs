//! The IP version over which scripts run.

use clap::{Args, ValueEnum};
use linerate_script::Family;

/// The option of `linerate script run` and `linerate script compare`.
#[derive(Debug, Args)]
pub(super) struct FamilyArgs {
    /// The IP version of the packets; a script with --ip_version=ipv4 is refused for IPv6
    #[arg(long, value_name = "FAMILY", value_enum, default_value_t = FamilyArg::Own)]
    family: FamilyArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FamilyArg {
    /// The IP version of the script: IPv4, or IPv6 with --ip_version=ipv6
    Own,
    /// IPv6: the packets of scripts for IPv4 are translated
    Ipv6,
}

impl FamilyArgs {
    pub(super) const fn family(&self) -> Family {
        match self.family {
            FamilyArg::Own => Family::Own,
            FamilyArg::Ipv6 => Family::Ipv6,
        }
    }
}
