//! What a sweep asks of a sink, and what the sink answers.

use super::error::ControlError;
use super::greeting::{self, Token};
use crate::ended::Ended;
use crate::serde_text;
use linerate_evidence::EndCounters;
use serde::{Deserialize, Serialize};

/// Something that a sweep asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Who are you? Answered by [`Reply::Description`].
    Describe {},
    /// What would you grant? Answered by [`Reply::Granted`].
    Grant {
        /// The receive buffer in question, in bytes.
        receive_buffer: u64,
    },
    /// What time is it? Answered by [`Reply::Time`].
    Time {},
    /// Get ready for a run. Answered by [`Reply::Opened`], then [`Reply::Ready`], then
    /// [`Reply::Done`].
    Open(RunSpec),
    /// End the run that is under way now. Answered by its [`Reply::Done`].
    Stop {},
}

/// Something that a sink answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// Who the sink is.
    Description(Description),
    /// The receive buffer that the kernel would grant, in bytes as it counts them.
    Granted {
        /// Bytes, as `SO_RCVBUF` reads back.
        granted_bytes: u64,
    },
    /// The sink's clock.
    Time {
        /// Nanoseconds since the sink began.
        nanos: u64,
    },
    /// The sink waits for the data connection.
    Opened(Opened),
    /// The data connection is there: write.
    Ready(Ready),
    /// The run is over.
    Done(Report),
    /// No, and why.
    Refused {
        /// A sentence for people.
        reason: String,
    },
}

/// The run that a sweep wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The receive buffer to ask the kernel for, in bytes; none leaves it to the kernel's tuning.
    pub receive_buffer: Option<u64>,
    /// How many bytes will come.
    pub bytes: u64,
    /// How many bytes a read may take.
    pub read_size: u64,
    /// Compare what arrives with the pattern of this seed.
    pub verify: Option<u64>,
    /// Stop this long after the first byte, in milliseconds, whatever has come by then.
    pub max_milliseconds: u64,
    /// The value of the MSS option to announce; none leaves it to the interface.
    pub max_segment: Option<u16>,
}

/// Who a sink is, and what it runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Program and version.
    pub program: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// Whose TCP takes what comes.
    #[serde(default)]
    pub tcp: SinkTcp,
    /// The machine's limit on receive buffers (`net.core.rmem_max`), if it tells.
    pub rmem_max: Option<u64>,
    /// Sweeps that are connected, this one included.
    pub sessions: u64,
}

/// Whose TCP a sink has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkTcp {
    /// The kernel's.
    #[default]
    Kernel,
    /// That of a host of linerate's own.
    Linerate,
}

impl SinkTcp {
    /// How many times what was asked for a buffer is when it is read back: the kernel counts its
    /// own overhead.
    #[must_use]
    pub const fn granted_per_asked(self) -> u64 {
        match self {
            Self::Kernel => 2,
            Self::Linerate => 1,
        }
    }
}

/// A run that the sink waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// What the data connection's greeting must say.
    #[serde(with = "serde_text")]
    pub(crate) token: Token,
    /// The listening socket's receive buffer as the kernel granted it, in bytes.
    pub granted_bytes: u64,
}

impl Opened {
    /// What the data connection must say first.
    #[must_use]
    pub fn greeting(&self) -> String {
        greeting::data(self.token)
    }
}

/// The data connection as the sink sees it, before the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The connection's receive buffer as the kernel granted it, in bytes.
    pub granted_bytes: u64,
}

/// What came of a run at the sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// Bytes read.
    pub bytes: u64,
    /// From having read the first byte to having read the last one, in nanoseconds of the sink's
    /// clock.
    pub span_nanos: u64,
    /// Where the first wrong byte was, if what arrived was compared and one was wrong.
    pub wrong_at: Option<u64>,
    /// What the kernel says of the connection at its end, and what was sampled while it ran.
    pub counters: EndCounters,
}

impl Report {
    /// Returns the report, if a sink that was sent `sent` bytes and asked to read `asked` can have
    /// made it.
    ///
    /// # Errors
    /// [`ControlError::WrongCount`] if it reports more bytes than were sent, or completion with
    /// another count.
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
    fn messages_look_as_the_protocol_says() {
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
    fn a_sink_cannot_have_read_what_was_not_sent_or_all_and_yet_less() {
        let report = |ended, bytes| {
            let counters = EndCounters::default();
            Report { ended, bytes, span_nanos: 1, wrong_at: None, counters }
                .checked(60, 100)
                .is_ok()
        };
        assert_eq!([59, 60, 61].map(|bytes| report(Ended::TimeUp, bytes)), [true, true, false]);
        assert_eq!([60, 100, u64::MAX].map(|bytes| report(Ended::Complete, bytes)), [false; 3]);
    }

    #[test]
    fn hostile_text_is_no_message() {
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
