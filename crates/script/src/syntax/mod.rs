//! The language: what a script may say. Reading it touches no machine, and whatever cannot be
//! obeyed is refused here, with its line, before anything is run.

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
    Call, CallEvent, ControlData, ControlMessage, Ends, EpollEvent, EpollOperation, Expected,
    ExtendedError, OptionValue, PollEntry, SocketOption, Transfer,
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

/// Why a script cannot be read: it is not in the language, or asks for what nobody here has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}: {}", shown(what))]
pub struct SyntaxError {
    /// The line, counted from one.
    pub line: u32,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// The words, of which some are the script's, in one line that does nothing to a terminal.
fn shown(what: &str) -> String {
    what.chars()
        .map(|sign| if sign.is_control() { char::REPLACEMENT_CHARACTER } else { sign })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Action, Script, Segment};

    /// What a script writes of a segment from the host.
    pub(crate) fn segment(text: &str) -> Segment {
        let script = Script::parse(&format!("0 > {text}"), None).unwrap();
        match script.events.into_iter().next().unwrap().action {
            Action::Outbound(segment) => segment,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_whatever_the_script_is() {
        for text in ["\x1b[2J", "`sysctl \r\n\x07=1`"] {
            let line = Script::parse(text, None).unwrap_err().to_string();
            assert!(line.starts_with("1: ") && !line.contains(char::is_control), "{line:?}");
        }
    }
}
