//! The kernel's congestion controls: which one a run takes, because the default differs by machine.

use crate::bench::BenchError;
use std::fs;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// The congestion controls of this machine's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Congestion {
    /// Those that are loaded.
    pub(crate) available: Vec<String>,
    /// Those that a program without privileges may choose.
    pub(crate) allowed: Vec<String>,
    /// What a socket gets that does not choose.
    pub(crate) default: Option<String>,
}

impl Congestion {
    /// What the kernel says.
    pub(crate) fn of_this_machine() -> Self {
        let default = names(DEFAULT).into_iter().next();
        Self { available: names(AVAILABLE), allowed: names(ALLOWED), default }
    }

    /// The one to pin: `wanted`, or else the machine's default by its name.
    pub(crate) fn choose(&self, wanted: Option<&str>) -> Result<Option<String>, BenchError> {
        let Some(wanted) = wanted else {
            return Ok(self.default.clone());
        };
        if self.available.iter().any(|name| name == wanted) {
            return Ok(Some(wanted.to_owned()));
        }
        Err(BenchError::UnknownName {
            what: "congestion control",
            name: wanted.to_owned(),
            known: format!("{} (more with `modprobe tcp_NAME`)", self.available.join(", ")),
        })
    }
}

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

    #[test]
    fn the_default_is_pinned_by_its_name() {
        assert_eq!(machine().choose(None).unwrap().as_deref(), Some("cubic"));
        assert_eq!(machine().choose(Some("reno")).unwrap().as_deref(), Some("reno"));
    }

    #[test]
    fn one_that_is_not_loaded_is_refused_with_those_that_are() {
        let error = machine().choose(Some("vegas")).unwrap_err().to_string();
        assert!(error.contains("`vegas`") && error.contains("reno, cubic"), "{error}");
    }
}
