//! Detection of calls that linerate's host does not support.

use super::StackMachine;
use super::calls::{
    DONT_WAIT, END_OF_RECORD, ERROR_QUEUE, FAST_OPEN, MORE, OUT_OF_BAND, PEEK, ZERO_COPY,
};
use crate::syntax::{Call, ControlData, ControlMessage, Transfer, constant};

/// Flag `MSG_NOSIGNAL`. Without effect, because this host sends no signals.
const NO_SIGNAL: i64 = 0x4000;
const READ: i64 = DONT_WAIT | PEEK | ERROR_QUEUE | NO_SIGNAL;
const WRITE: i64 =
    DONT_WAIT | OUT_OF_BAND | FAST_OPEN | MORE | END_OF_RECORD | ZERO_COPY | NO_SIGNAL;

impl StackMachine {
    /// Returns the part of a call that linerate's host does not support, if there is one.
    pub(super) fn unsupported(&self, call: &Call) -> Option<String> {
        match call {
            Call::Read(transfer) if transfer.flags & !READ != 0 => Some(format!(
                "reading with flags {:#x}: supported are MSG_PEEK, MSG_DONTWAIT and MSG_ERRQUEUE",
                transfer.flags
            )),
            Call::Read(Transfer { fd, count: 1.., flags, .. })
                if flags & ERROR_QUEUE != 0 && self.returns_packets(*fd) =>
            {
                Some(
                    "the packet that a timestamp belongs to: set SOF_TIMESTAMPING_OPT_TSONLY, or \
                     give no room for it"
                        .to_owned(),
                )
            }
            Call::Write(transfer) if transfer.flags & !WRITE != 0 => Some(format!(
                "writing with flags {:#x}: MSG_OOB, MSG_DONTWAIT, MSG_FASTOPEN, MSG_MORE, MSG_EOR \
                 and MSG_ZEROCOPY are supported",
                transfer.flags
            )),
            Call::Write(Transfer { control: Some(control), .. }) if !is_timestamping(control) => {
                Some("sending control messages other than one of SO_TIMESTAMPING".to_owned())
            }
            Call::SetOption { fd, option, value } => {
                self.unsupported_option(*fd, *option, Some(value))
            }
            Call::GetOption { fd, option, .. } => self.unsupported_option(*fd, *option, None),
            _ => None,
        }
    }
}

fn is_timestamping(control: &[ControlMessage]) -> bool {
    matches!(control, [ControlMessage { level, kind, data: ControlData::Number(_) }]
        if Some(*level) == constant("SOL_SOCKET") && Some(*kind) == constant("SO_TIMESTAMPING"))
}
