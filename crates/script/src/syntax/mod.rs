//! The language of scripts. Before a script runs, the parser has accepted all of it. Anything that
//! is not supported is refused with the number of its line.

mod call;
mod code;
mod cursor;
mod datagram;
mod definitions;
mod event;
mod icmp;
mod ip;
mod names;
mod packet;
mod settings;
mod shell;
mod value;

pub use call::{
    Call, CallEvent, ControlData, ControlMessage, EpollEvent, EpollOperation, Expected,
    ExtendedError, OptionValue, PollEntry, ReturnTime, SocketOption, Transfer,
};
pub use code::{Code, CodeError};
pub use datagram::Datagram;
pub use definitions::Definitions;
pub use event::{Action, Event, Script, When};
pub use icmp::{Icmp, IcmpBody, IcmpKind, Quoted};
pub use ip::{ExtensionHeader, IpMarks, LineMark, Marks, Piece};
pub use names::Errno;
pub use packet::{Packet, Segment, SegmentOption, SegmentOptions};
pub use settings::{Line, Settings};
pub use shell::{Setting, ShellStep};

pub(crate) use event::seconds;
pub(crate) use names::constant;
pub(crate) use settings::embedded;

use thiserror::Error;

/// The reason why a script was not accepted: an error, or an unsupported feature.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}: {}", printable(what))]
pub struct SyntaxError {
    /// Number of the line, counted from one.
    pub line: u32,
    /// A description of the error, with the remedy.
    pub what: String,
}

/// Returns `what` as one line for an error message. Control characters, which can come from the
/// script, are replaced.
fn printable(what: &str) -> String {
    what.chars()
        .map(|sign| if sign.is_control() { char::REPLACEMENT_CHARACTER } else { sign })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Action, Packet, Script};

    /// Parses the packet of an outbound event.
    pub(crate) fn packet(text: &str) -> Packet {
        let script = Script::parse(&format!("0 > {text}"), None).unwrap();
        match script.events.into_iter().next().unwrap().action {
            Action::Outbound(packet) => packet,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_error_is_one_line_whatever_the_script_contains() {
        for text in ["\x1b[2J", "`sysctl \r\n\x07=1`"] {
            let line = Script::parse(text, None).unwrap_err().to_string();
            assert!(line.starts_with("1: ") && !line.contains(char::is_control), "{line:?}");
        }
    }
}
