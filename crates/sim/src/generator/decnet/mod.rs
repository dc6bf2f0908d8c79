//! A model of DECnet senders. It reproduces only their load on a wire and on a machine's memory.
//! One host is the sender, and has a connection to each of several receivers. It repeats an
//! unacknowledged message after a timeout, which grows linearly or exponentially with each
//! repetition. A message occupies a buffer of the sender's pool until it is acknowledged. A
//! repetition occupies another buffer while it waits for the wire.

mod receiver;
mod sender;

pub(crate) use receiver::DecnetReceiver;
pub(crate) use sender::DecnetSender;

use super::{FrameCosts, Header};
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// EtherType of messages and acknowledgements: IEEE 802 local experimental EtherType 2.
const KIND: u16 = 0x88b6;

/// Upper limit of the configured message size, in bytes.
const LONGEST_MESSAGE: u64 = 65_535;
/// Upper limit of the configured window, in messages.
const WIDEST_WINDOW: u64 = 65_536;
/// Upper limit of the configured sizes of the pool and of a buffer, in bytes. It also bounds the
/// number of queued frames, because each occupies at least [`SMALLEST_BUFFER`] bytes of the pool.
const LARGEST_POOL: u64 = 100_000_000;
/// Lower limit of the configured size of a buffer, in bytes.
const SMALLEST_BUFFER: u64 = 64;

/// The rule by which the retransmission timeout of a message grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backoff {
    /// Each repetition of a message lengthens its timeout by the initial timeout.
    Linear,
    /// Each repetition of a message doubles its timeout, up to the sixteenth.
    Exponential,
}

/// Parameters of a DECnet model, which sender and receivers share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecnetParameters {
    costs: FrameCosts,
    /// Length in bytes of the frame that carries a message, without its check sequence.
    message: usize,
    /// Interval between the new messages of a connection.
    interval: Span,
    /// Maximum number of unacknowledged messages of a connection.
    window: usize,
    /// Initial retransmission timeout of a message.
    timeout: Span,
    backoff: Backoff,
    /// Size of the buffer pool in bytes.
    pool: usize,
    /// Size of one buffer in bytes. A message occupies a buffer until it is acknowledged. A
    /// repetition occupies a second buffer until it has been sent.
    buffer: usize,
    /// Simulated time after which no new messages are generated.
    time: Span,
}

impl DecnetParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let backoff = match section.word("backoff")? {
            "linear" => Backoff::Linear,
            "exponential" => Backoff::Exponential,
            other => {
                return Err(ParameterError::Unknown {
                    what: "backoff",
                    name: other.to_owned(),
                    known: "linear, exponential".to_owned(),
                });
            }
        };
        Ok(Self {
            costs: FrameCosts::read(section)?,
            message: section.size_within("message", 1..=LONGEST_MESSAGE)?,
            interval: section.pause("interval")?,
            window: section.size_within("window", 1..=WIDEST_WINDOW)?,
            timeout: section.pause("timeout")?,
            backoff,
            pool: section.size_within("pool", 1..=LARGEST_POOL)?,
            buffer: section.size_within("buffer", SMALLEST_BUFFER..=LARGEST_POOL)?,
            time: section.span("time")?,
        })
    }

    /// Returns the length in bytes of the longest frame that sender or receiver transmits.
    pub(crate) const fn longest(&self) -> usize {
        self.message
    }

    /// Returns the time from a transmission of a message to its next repetition, if the message has
    /// been repeated `repeated` times so far.
    fn wait(&self, repeated: u32) -> Span {
        match self.backoff {
            Backoff::Linear => self.timeout * (u64::from(repeated) + 1),
            Backoff::Exponential => self.timeout * (1 << repeated.min(16)),
        }
    }
}

/// Parses the header of a message or acknowledgement that is addressed to the NIC with this number.
/// Returns `None` for any other frame.
fn read(frame: &[u8], number: usize) -> Option<Header> {
    Header::read(frame).filter(|header| header.kind == KIND && header.to == number)
}
