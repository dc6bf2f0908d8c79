//! Congestion controls by name: those of linerate's TCP and those of the kernel.
//!
//! A run on the kernel's TCP always sets its congestion control by name, even if that is the
//! kernel's default. The name can then be recorded, which matters because the default differs
//! between machines.

use linerate_tcp::CongestionName;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::fs;
use thiserror::Error;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// The congestion controls that this machine's kernel offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Congestion {
    /// Names of the congestion controls that are built into the kernel or loaded as modules.
    pub available: Vec<String>,
    /// Names of the congestion controls that unprivileged programs may choose.
    pub allowed: Vec<String>,
    /// Name of the kernel's default; `None` if the name cannot be read.
    pub default: Option<String>,
}

/// The reason why a congestion control cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CongestionError {
    /// The choice of this congestion control needs privileges.
    #[error(
        "no permission for the congestion control `{name}`: choose one of {allowed}, run as root, \
         or add it to net.ipv4.tcp_allowed_congestion_control"
    )]
    Forbidden {
        /// The requested congestion control.
        name: String,
        /// The congestion controls that are allowed, separated by commas.
        allowed: String,
    },
    /// The kernel has neither the congestion control nor a module for it.
    #[error(
        "there is no congestion control `{name}`: choose one of {available} (more with `modprobe \
         tcp_NAME`)"
    )]
    Unknown {
        /// The requested congestion control.
        name: String,
        /// The congestion controls that the kernel has, separated by commas.
        available: String,
    },
    /// linerate's TCP does not have the congestion control.
    #[error(
        "linerate's TCP has no congestion control `{name}`: choose one of {available}, \
         fixed:SEGMENTS"
    )]
    UnknownToLinerate {
        /// The requested congestion control.
        name: String,
        /// The congestion controls that linerate's TCP has, separated by commas.
        available: String,
    },
}

/// Checks that linerate's TCP has the congestion control `name`.
///
/// # Errors
/// [`CongestionError::UnknownToLinerate`], with the names that can be chosen.
pub fn check_own_congestion(name: &str) -> Result<(), CongestionError> {
    match name.parse::<CongestionName>() {
        Ok(_) => Ok(()),
        Err(_) => Err(CongestionError::UnknownToLinerate {
            name: name.to_owned(),
            available: CongestionName::ALL.map(|name| name.to_string()).join(", "),
        }),
    }
}

impl Congestion {
    /// Reads the names that this machine's kernel offers.
    pub fn of_this_machine() -> Self {
        let default = names(DEFAULT).into_iter().next();
        Self { available: names(AVAILABLE), allowed: names(ALLOWED), default }
    }

    /// Returns the name of the congestion control to set: `wanted` if it is given, otherwise the
    /// kernel's default. Returns `None` if no name is given and the default is unknown.
    ///
    /// # Errors
    /// [`CongestionError`], with the names that can be chosen.
    pub fn choose(&self, wanted: Option<&str>) -> Result<Option<String>, CongestionError> {
        self.choose_by(wanted, try_out)
    }

    /// Chooses like [`Congestion::choose`]. `try_out` tests whether the kernel accepts a name. A
    /// lookup in the list of available names would not suffice: the kernel may load a module for
    /// other names.
    fn choose_by(
        &self,
        wanted: Option<&str>,
        try_out: impl Fn(&str) -> Result<(), Errno>,
    ) -> Result<Option<String>, CongestionError> {
        let Some(wanted) = wanted else {
            return Ok(self.default.clone());
        };
        match try_out(wanted) {
            Ok(()) => Ok(Some(wanted.to_owned())),
            Err(Errno::PERM) => Err(CongestionError::Forbidden {
                name: wanted.to_owned(),
                allowed: self.allowed.join(", "),
            }),
            Err(_) => Err(CongestionError::Unknown {
                name: wanted.to_owned(),
                available: self.available.join(", "),
            }),
        }
    }
}

/// Sets the congestion control `name` on a new socket, to find out whether the kernel accepts it.
fn try_out(name: &str) -> Result<(), Errno> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_tcp_congestion(socket, name)
}

/// Returns the words of a file; no words if the file cannot be read.
fn names(file: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Congestion {
        Congestion {
            available: vec!["reno".into(), "cubic".into()],
            allowed: vec!["reno".into()],
            default: Some("cubic".into()),
        }
    }

    fn kernel(name: &str) -> Result<(), Errno> {
        match name {
            "reno" | "htcp" => Ok(()),
            "cubic" => Err(Errno::PERM),
            _ => Err(Errno::NOENT),
        }
    }

    #[test]
    fn the_default_is_chosen_by_its_name() {
        let chosen = |wanted| machine().choose_by(wanted, kernel).unwrap();
        assert_eq!(chosen(None).as_deref(), Some("cubic"));
        assert_eq!(chosen(Some("reno")).as_deref(), Some("reno"));
        assert_eq!(chosen(Some("htcp")).as_deref(), Some("htcp"), "the kernel loads a module");
    }

    #[test]
    fn an_unavailable_congestion_control_is_refused_with_the_available_ones() {
        let refused = |wanted| machine().choose_by(Some(wanted), kernel).unwrap_err().to_string();
        let unknown = refused("vegas");
        assert!(unknown.contains("`vegas`") && unknown.contains("reno, cubic"), "{unknown}");
        let forbidden = refused("cubic");
        assert!(
            forbidden.contains("no permission") && forbidden.contains("choose one of reno,"),
            "{forbidden}"
        );
        assert!(Congestion::of_this_machine().choose(Some("no-such")).is_err());
    }
}
