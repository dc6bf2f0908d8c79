//! The language of scripts. Parsing refuses everything that is not supported, with its line, before
//! anything is run.

mod call;
mod code;
mod cursor;
mod definitions;
mod event;
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
pub use definitions::Definitions;
pub use event::{Action, Event, Script, When};
pub use names::Errno;
pub use packet::{Icmp, IpMarks, Marks, Segment, SegmentOption, SegmentOptions};
pub use settings::Settings;
pub use shell::{Setting, ShellStep};

pub(crate) use event::seconds;
pub(crate) use names::constant;

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

/// Returns text that may quote the script, on one line and without control characters.
fn printable(what: &str) -> String {
    what.chars()
        .map(|sign| if sign.is_control() { char::REPLACEMENT_CHARACTER } else { sign })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Action, Script, Segment};

    /// Parses a script's line with an outbound segment, and returns the segment.
    pub(crate) fn segment(text: &str) -> Segment {
        let script = Script::parse(&format!("0 > {text}"), None).unwrap();
        match script.events.into_iter().next().unwrap().action {
            Action::Outbound(segment) => segment,
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
