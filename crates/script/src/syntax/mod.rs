//! The language: what a script may say. Reading it touches no machine, and whatever cannot be obeyed
//! is refused here, with its line, before anything is run.

mod call;
mod code;
mod cursor;
mod event;
mod names;
mod packet;
mod settings;
mod shell;
mod value;

pub use call::{Call, CallEvent, Ends, Expected, OptionValue, PollEntry, SocketOption, Transfer};
pub use code::{Code, CodeError};
pub use event::{Action, Event, Script, When};
pub use names::Errno;
pub use packet::{Icmp, IpMarks, Marks, Segment, SegmentOption, SegmentOptions};
pub use settings::Settings;
pub use shell::Setting;

pub(crate) use event::seconds;
pub(crate) use names::constant;

use thiserror::Error;

/// Why a script cannot be read: it is not in the language, or asks for what nobody here has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{line}: {what}")]
pub struct SyntaxError {
    /// The line, counted from one.
    pub line: u32,
    /// What is wrong, and what would be right.
    pub what: String,
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
}
