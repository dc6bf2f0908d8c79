//! The messages of a control connection, each of which is sent as a line of JSON.

use super::error::ControlError;
use super::greeting::{self, Token};
use crate::ended::Ended;
use crate::serde_text;
use linerate_evidence::{EndCounters, EndEvidence};
use serde::{Deserialize, Serialize};

/// A request from a sweep to a sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// A request for a description of the sink. The reply is [`Reply::Description`].
    Describe {},
    /// A request for the size of the receive buffer that the TCP of the sink would grant if
    /// `receive_buffer` bytes were requested. The reply is [`Reply::Granted`].
    Grant {
        /// The requested receive buffer in bytes.
        receive_buffer: u64,
    },
    /// A request for the sink's time. The reply is [`Reply::Time`].
    Time {},
    /// A request for a run. The replies are [`Reply::Opened`], [`Reply::Ready`] and
    /// [`Reply::Done`].
    Open(RunSpec),
    /// A request to end the current run. If the data connection of the run has arrived, the sink
    /// replies with [`Reply::Done`]. Otherwise there is no reply.
    Stop {},
}

/// A reply from a sink to a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// A description of the sink.
    Description(Description),
    /// The reply to [`Request::Grant`].
    Granted {
        /// Size of the granted receive buffer in bytes, as `getsockopt` reports it.
        granted_bytes: u64,
    },
    /// The time of the sink's clock.
    Time {
        /// Nanoseconds since the sink started.
        nanos: u64,
    },
    /// The run is accepted, and the sink waits for the data connection.
    Opened(Opened),
    /// The data connection has arrived, so the sweep can start writing.
    Ready(Ready),
    /// The run has ended.
    Done(Report),
    /// The sink refuses the request.
    Refused {
        /// The reason of the refusal, as a sentence.
        reason: String,
    },
}

/// The parameters of a run that a sweep requests from a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Size of the receive buffer in bytes that is requested; `None` keeps the default of the sink.
    pub receive_buffer: Option<u64>,
    /// Number of bytes to transfer.
    pub bytes: u64,
    /// Maximum number of bytes that the sink reads at once.
    pub read_size: u64,
    /// Seed of the pattern with which the sink compares the data; `None` for no comparison.
    pub verify: Option<u64>,
    /// Maximum duration of the run in milliseconds, counted from the first byte.
    pub max_milliseconds: u64,
    /// MSS that the sink announces in bytes; `None` selects the MSS of the interface. A sink with
    /// linerate's TCP ignores this value.
    pub max_segment: Option<u16>,
    /// Delay in milliseconds from the first byte to the start of observation; `None` for no
    /// observation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observe_after: Option<u64>,
    /// Does the kernel of the sink discard the data without copying it? Data that the sink compares
    /// is copied nevertheless. If the field is true, the sink's own read size and its pauses
    /// (`--read-pause`) do not apply.
    #[serde(default)]
    pub discard: bool,
}

/// A sink's description of itself and its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Name and version of the sink's program.
    pub program: String,
    /// Name, release and build of the kernel.
    pub kernel: String,
    /// The TCP implementation that receives the data.
    #[serde(default)]
    pub tcp: SinkTcp,
    /// The kernel's limit of receive buffers in bytes (`net.core.rmem_max`); `None` if it is not
    /// known.
    pub rmem_max: Option<u64>,
    /// Number of sweeps that are connected to the sink, including the sweep that requests the
    /// description.
    pub sessions: u64,
}

/// The TCP implementation that a sink uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkTcp {
    /// The TCP of the kernel of the sink's machine.
    #[default]
    Kernel,
    /// The TCP of a linerate host on an interface.
    Linerate,
}

impl SinkTcp {
    /// Returns the ratio of a buffer's size, as `getsockopt` reports it, to the requested size. The
    /// kernel doubles the size to make room for its overhead.
    #[must_use]
    pub const fn granted_per_asked(self) -> u64 {
        match self {
            Self::Kernel => 2,
            Self::Linerate => 1,
        }
    }
}

/// The reply of a sink that accepts a run. The data connection of the run does not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The token that the data connection must send in its greeting.
    #[serde(with = "serde_text")]
    pub(crate) token: Token,
    /// Receive buffer granted to the listening socket, in bytes as `getsockopt` reports it.
    pub granted_bytes: u64,
}

impl Opened {
    /// Returns the greeting that must be sent first on the data connection.
    #[must_use]
    pub fn greeting(&self) -> String {
        greeting::data(self.token)
    }
}

/// The reply of a sink that accepts the data connection of a run. No data of the run has arrived
/// yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Receive buffer granted to the connection, in bytes as `getsockopt` reports it.
    pub granted_bytes: u64,
}

/// The sink's report on a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The reason why the run ended.
    pub ended: Ended,
    /// Number of bytes that the sink read.
    pub bytes: u64,
    /// Time from reading the first byte to reading the last byte, in nanoseconds of the sink's
    /// clock.
    pub span_nanos: u64,
    /// Position of the first wrong byte in the data; `None` if the data was intact or was not
    /// compared.
    pub wrong_at: Option<u64>,
    /// Counters of the sink's end of the connection, and peaks of its queues.
    pub counters: EndCounters,
    /// Evidence from the observation of the sink's end; `None` if the run was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Box<EndEvidence>>,
}

impl Report {
    /// Checks the number of bytes in the report. `sent` is the number of bytes that the source
    /// sent, and `asked` the number that the run was to transfer. Returns the report if its number
    /// of bytes is possible.
    ///
    /// # Errors
    /// [`ControlError::WrongCount`] if the report claims more bytes than were sent, or a complete
    /// run with another number of bytes than `asked`.
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
