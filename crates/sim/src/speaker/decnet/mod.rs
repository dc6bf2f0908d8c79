//! Senders like DECnet's, as far as a wire and a machine's memory see them: one host has a connection with each of some
//! others, repeats what is not acknowledged after a time that grows linearly or doubles, and takes every message and every
//! repetition that waits for the wire from one pool of memory.

mod receiver;
mod sender;

pub(crate) use receiver::DecnetReceiver;
pub(crate) use sender::DecnetSender;

use super::{Header, Labour};
use crate::parameter::{ParameterError, Section};
use linerate_units::Span;

/// An EtherType for tests (IEEE 802 local experimental 2): messages and acknowledgements of them.
const KIND: u16 = 0x88b6;

/// Bytes of a message.
const LONGEST_MESSAGE: u64 = 65_535;
/// Messages.
const WIDEST_WINDOW: u64 = 65_536;
/// Bytes of the pool, and of what is taken from it: what waits for the wire has an end.
const LARGEST_POOL: u64 = 100_000_000;
const SMALLEST_BUFFER: u64 = 64;

/// How the time grows after which a message is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backoff {
    /// By the first time with each repetition.
    Linear,
    /// To twice what it was.
    Exponential,
}

/// Both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecnetParameters {
    labour: Labour,
    /// Bytes of a message, as a frame without its check sequence.
    message: usize,
    /// A connection has a new one so often …
    interval: Span,
    /// … if not so many are unacknowledged.
    window: usize,
    /// How long an acknowledgement is first waited for.
    timeout: Span,
    backoff: Backoff,
    /// Bytes of the pool.
    pool: usize,
    /// Bytes of it that a message takes until it is acknowledged, and a repetition until it has left.
    buffer: usize,
    /// New messages are made for so long.
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
            labour: Labour::read(section)?,
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

    /// Bytes of the longest frame of either end.
    pub(crate) const fn longest(&self) -> usize {
        self.message
    }

    /// How long is waited after a message has been repeated so often?
    fn wait(&self, repeated: u32) -> Span {
        match self.backoff {
            Backoff::Linear => self.timeout * (u64::from(repeated) + 1),
            Backoff::Exponential => self.timeout * (1 << repeated.min(16)),
        }
    }
}

/// The header of a frame, if it is one of these, for this station.
fn read(frame: &[u8], number: usize) -> Option<Header> {
    Header::read(frame).filter(|header| header.kind == KIND && header.to == number)
}
