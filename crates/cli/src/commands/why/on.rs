//! The value of `linerate why --on`: the sending TCP.

use linerate_link::{LinkSpec, ParseLinkError};
use std::str::FromStr;

/// A sending TCP other than the kernel's, and the path on which it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum On {
    /// linerate's TCP at both ends of a link in memory.
    Stack,
    /// linerate's TCP at one end of a TAP device, which sends to the kernel's TCP at the other end.
    Tap,
    /// The first bulk transfer of a simulated scenario.
    Scenario(String),
    /// linerate's TCP on an interface, which sends to another machine.
    Interface(LinkSpec),
}

impl FromStr for On {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stack" => return Ok(Self::Stack),
            "tap" => return Ok(Self::Tap),
            _ => {}
        }
        if let Some(name) = text.strip_prefix("sim:").filter(|name| !name.is_empty()) {
            return Ok(Self::Scenario(name.to_owned()));
        }
        text.parse().map(Self::Interface).map_err(|error| match error {
            ParseLinkError::NoLink => {
                "write one of stack, tap, sim:NAME (`linerate sim list`), packet:NAME, \
                 xdp:NAME:QUEUE, tap:NAME, tun:NAME, serial:DEVICE@BAUD, or leave it out for the \
                 kernel's TCP"
                    .to_owned()
            }
            error => error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_by_its_engine() {
        assert_eq!("stack".parse(), Ok(On::Stack));
        assert_eq!("tap".parse(), Ok(On::Tap));
        assert_eq!("sim:x".parse(), Ok(On::Scenario("x".to_owned())));
        let link = LinkSpec::Xdp("eth1".to_owned(), 2);
        assert_eq!("xdp:eth1:2".parse(), Ok(On::Interface(link)));
        for text in ["sim:", "moon", ""] {
            assert!(text.parse::<On>().unwrap_err().starts_with("write one of stack"), "{text}");
        }
    }
}
