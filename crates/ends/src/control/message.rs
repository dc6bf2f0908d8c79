//! The messages of a control connection.

use super::error::ControlError;
use super::greeting::{self, Token};
use crate::ended::Ended;
use crate::serde_text;
use linerate_evidence::{EndCounters, EndEvidence};
use serde::{Deserialize, Serialize};

/// A request of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Requests a description of the sink. Answered by [`Reply::Description`].
    Describe {},
    /// Requests the receive buffer that would be granted. Answered by [`Reply::Granted`].
    Grant {
        /// The requested receive buffer in bytes.
        receive_buffer: u64,
    },
    /// Requests the time. Answered by [`Reply::Time`].
    Time {},
    /// Requests a run. Answered by [`Reply::Opened`], [`Reply::Ready`] and [`Reply::Done`].
    Open(RunSpec),
    /// Ends the current run. Answered by its [`Reply::Done`].
    Stop {},
}

/// A reply of a sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// A description of the sink.
    Description(Description),
    /// The receive buffer that the kernel would grant.
    Granted {
        /// Bytes, as `SO_RCVBUF` reads back.
        granted_bytes: u64,
    },
    /// The time of the sink.
    Time {
        /// Nanoseconds since the sink started.
        nanos: u64,
    },
    /// The sink waits for the data connection.
    Opened(Opened),
    /// The data connection is open: the sweep can write.
    Ready(Ready),
    /// The run has ended.
    Done(Report),
    /// The request is refused.
    Refused {
        /// The reason, as a sentence.
        reason: String,
    },
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The receive buffer in bytes; `None` selects the kernel's automatic tuning.
    pub receive_buffer: Option<u64>,
    /// Number of bytes to transfer.
    pub bytes: u64,
    /// Maximum number of bytes of a read.
    pub read_size: u64,
    /// The seed of the pattern to compare the data with, if any.
    pub verify: Option<u64>,
    /// Maximum duration from the first byte, in milliseconds.
    pub max_milliseconds: u64,
    /// The MSS to announce; `None` selects that of the interface.
    pub max_segment: Option<u16>,
    /// Is the run observed, and from how many milliseconds after its first byte?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe_after: Option<u64>,
    /// Is the data discarded without a copy, and without the pauses of the sink?
    #[serde(default)]
    pub discard: bool,
}

/// The identity of a sink and its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Program and version.
    pub program: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// The TCP implementation of the sink.
    #[serde(default)]
    pub tcp: SinkTcp,
    /// The limit of the machine on receive buffers (`net.core.rmem_max`), if it is known.
    pub rmem_max: Option<u64>,
    /// Number of connected sweeps, including this one.
    pub sessions: u64,
}

/// The TCP implementation of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkTcp {
    /// The kernel.
    #[default]
    Kernel,
    /// A linerate host.
    Linerate,
}

impl SinkTcp {
    /// Returns the ratio of a buffer's size as it reads back to the requested size: the kernel adds
    /// its overhead.
    #[must_use]
    pub const fn granted_per_asked(self) -> u64 {
        match self {
            Self::Kernel => 2,
            Self::Linerate => 1,
        }
    }
}

/// A run whose data connection the sink expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The token in the greeting of the data connection.
    #[serde(with = "serde_text")]
    pub(crate) token: Token,
    /// The receive buffer of the listening socket as granted, in bytes.
    pub granted_bytes: u64,
}

impl Opened {
    /// Returns the greeting of the data connection.
    #[must_use]
    pub fn greeting(&self) -> String {
        greeting::data(self.token)
    }
}

/// The data connection as accepted by the sink, before the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The receive buffer of the connection as granted, in bytes.
    pub granted_bytes: u64,
}

/// The sink's report on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The reason for the end.
    pub ended: Ended,
    /// Bytes read.
    pub bytes: u64,
    /// Time from reading the first byte to reading the last one, in nanoseconds of the sink's
    /// clock.
    pub span_nanos: u64,
    /// Position of the first wrong byte, if the data was compared and differs.
    pub wrong_at: Option<u64>,
    /// The counters of the connection at its end, and the sampled peaks.
    pub counters: EndCounters,
    /// The evidence, if the run was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Box<EndEvidence>>,
}

impl Report {
    /// Checks the report against the number of bytes sent and requested.
    ///
    /// # Errors
    /// [`ControlError::WrongCount`] if it reports more bytes than were sent, or completion with
    /// another number.
    pub fn checked(self, sent: u64, asked: u64) -> Result<Self, ControlError> {
        let whole = self.ended == Ended::Complete;
        if self.bytes > sent || (whole && self.bytes != asked) {
            return Err(ControlError::WrongCount { said: self.bytes, sent, asked });
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_format_of_the_protocol() {
        let opened = Reply::Opened(Opened { token: Token(0x9f), granted_bytes: 2_920 });
        let text = serde_json::to_string(&opened).unwrap();
        assert_eq!(
            text,
            r#"{"opened":{"token":"0000000000000000000000000000009f","granted_bytes":2920}}"#
        );
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), opened);
        assert_eq!(serde_json::to_string(&Request::Describe {}).unwrap(), r#"{"describe":{}}"#);
    }

    #[test]
    fn impossible_byte_counts_are_refused() {
        let report = |ended, bytes| {
            let counters = EndCounters::default();
            Report { ended, bytes, span_nanos: 1, wrong_at: None, counters, evidence: None }
                .checked(60, 100)
                .is_ok()
        };
        assert_eq!([59, 60, 61].map(|bytes| report(Ended::TimeUp, bytes)), [true, true, false]);
        assert_eq!([60, 100, u64::MAX].map(|bytes| report(Ended::Complete, bytes)), [false; 3]);
    }

    #[test]
    fn hostile_text_is_not_a_message() {
        for text in [
            "",
            "null",
            "{}",
            r#"{"open":{}}"#,
            r#"{"open":{"receive_buffer":-1,"bytes":1,"read_size":1,"max_milliseconds":1}}"#,
            r#"{"grant":{"receive_buffer":1e99}}"#,
            r#"{"describe":{},"time":{}}"#,
        ] {
            assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
        }
        let deep = "[".repeat(16_000);
        assert!(serde_json::from_str::<Request>(&deep).is_err());
    }
}
