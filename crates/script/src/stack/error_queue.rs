//! The error queue of a socket: completions of `MSG_ZEROCOPY`, and timestamps of data that were
//! scheduled, sent or acknowledged (`SO_TIMESTAMPING`).

use super::StackMachine;
use crate::machine::{Answer, Machine, Output};
use crate::syntax::{ControlData, ControlMessage, Errno, ExtendedError, constant};
use bytes::Bytes;
use linerate_units::Duration;
use std::collections::VecDeque;

/// Maximum number of entries in a socket's queue, unread and pending ones together. While the queue
/// is full, writes on the socket are refused.
const MAX_ENTRIES: usize = 1_024;

const TX_SOFTWARE: i64 = 1 << 1;
const SOFTWARE: i64 = 1 << 4;
const OPT_ID: i64 = 1 << 7;
const TX_SCHED: i64 = 1 << 8;
const TX_ACK: i64 = 1 << 9;
const OPT_TSONLY: i64 = 1 << 11;
/// Flags of `SO_TIMESTAMPING` that select the events to timestamp.
const TX: i64 = TX_SOFTWARE | TX_SCHED | TX_ACK;
/// All supported flags of `SO_TIMESTAMPING`.
pub(super) const TIMESTAMPING: i64 = TX | SOFTWARE | OPT_ID | OPT_TSONLY;

const SENT: i64 = 0;
const SCHEDULED: i64 = 1;
const ACKNOWLEDGED: i64 = 2;

/// The error queue of a socket.
#[derive(Debug, Default)]
pub(super) struct ErrorQueue {
    pub(super) zero_copy: bool,
    timestamping: i64,
    /// Stream position that counts as zero in the keys of timestamps: that of the first
    /// unacknowledged byte when `SOF_TIMESTAMPING_OPT_ID` was set.
    first: u64,
    /// Stream position of the next byte to be written. It counts from the byte that was the first
    /// unacknowledged one when the queue was created.
    written: u64,
    next_id: u32,
    waiting: VecDeque<Waiting>,
    notices: VecDeque<Notice>,
}

/// A pending entry of the error queue. It becomes readable when the data of its write are sent or
/// acknowledged.
#[derive(Debug)]
struct Waiting {
    /// Stream position after the last byte of the write.
    end: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// One buffer of the zero-copy write with number `id`. The buffer is released when its data are
    /// acknowledged and nothing else refers to `memory`. A write can have several buffers;
    /// releasing the one with `is_last` completes the write.
    ZeroCopy { id: u32, memory: Bytes, is_last: bool },
    /// A timestamp of the kind `kind`, such as sent or acknowledged. `key` is the position of the
    /// last byte of its write, or 0 without `SOF_TIMESTAMPING_OPT_ID`.
    Timestamp { kind: i64, key: u32 },
}

/// An entry of the error queue that can be read.
#[derive(Debug, PartialEq, Eq)]
enum Notice {
    /// Completion of all zero-copy writes from the first number to the second.
    ZeroCopy(u32, u32),
    Timestamp {
        kind: i64,
        key: u32,
        at: Duration,
    },
}

impl ErrorQueue {
    /// Returns whether an entry can be read.
    pub(super) fn is_readable(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Returns whether the queue has reached its maximum number of entries.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() + self.notices.len() >= MAX_ENTRIES
    }

    /// Returns the queue of an accepted socket, which inherits the listener's options `SO_ZEROCOPY`
    /// and `SO_TIMESTAMPING`, as in Linux.
    pub(super) fn inherited(&self) -> Self {
        let Self { zero_copy, timestamping, .. } = *self;
        Self { zero_copy, timestamping, ..Self::default() }
    }

    /// Adds the pending entries of a write of `taken` bytes. `memory` has the data of a zero-copy
    /// write. `control` has the timestamps that a control message of this call requests; `None`
    /// selects those of the socket option. `is_last` is false if the call will write more bytes.
    fn note_write(
        &mut self,
        taken: usize,
        is_last: bool,
        memory: Option<Bytes>,
        control: Option<i64>,
    ) {
        self.written += taken as u64;
        let (end, id) = (self.written, self.next_id);
        if let Some(memory) = memory {
            self.waiting.push_back(Waiting { end, what: What::ZeroCopy { id, memory, is_last } });
            self.next_id = id.wrapping_add(is_last.into());
        }
        let wanted = control.unwrap_or(self.timestamping);
        if !is_last || taken == 0 {
            return;
        }
        let number = end.wrapping_sub(self.first).wrapping_sub(1);
        #[allow(clippy::cast_possible_truncation, reason = "the number is one of 32 bits in Linux")]
        let key = if self.timestamping & OPT_ID != 0 { number as u32 } else { 0 };
        for (flag, kind) in [(TX_SCHED, SCHEDULED), (TX_SOFTWARE, SENT), (TX_ACK, ACKNOWLEDGED)] {
            if wanted & flag != 0 {
                self.waiting.push_back(Waiting { end, what: What::Timestamp { kind, key } });
            }
        }
    }

    /// Makes those entries readable whose data have now been sent or acknowledged, as each
    /// requires. `unsent` and `unacknowledged` are the bytes of the connection that are not yet
    /// sent or acknowledged. Timestamps get the time `at`. Returns whether an entry became
    /// readable.
    fn advance(&mut self, at: Duration, unsent: u64, unacknowledged: u64) -> bool {
        let sent = self.written.saturating_sub(unsent);
        let acknowledged = self.written.saturating_sub(unacknowledged);
        let before = self.notices.len();
        for waiting in std::mem::take(&mut self.waiting) {
            let reached = match waiting.what {
                What::ZeroCopy { ref memory, .. } => {
                    waiting.end <= acknowledged && memory.is_unique()
                }
                What::Timestamp { kind: ACKNOWLEDGED, .. } => waiting.end <= acknowledged,
                What::Timestamp { .. } => waiting.end <= sent,
            };
            match waiting.what {
                _ if !reached => self.waiting.push_back(waiting),
                What::ZeroCopy { id, is_last: true, .. } => self.complete(id),
                What::ZeroCopy { .. } => {}
                What::Timestamp { kind, key } => {
                    self.notices.push_back(Notice::Timestamp { kind, key, at });
                }
            }
        }
        self.notices.len() > before
    }

    /// Makes the completion of zero-copy write `id` readable. If the newest readable entry is the
    /// completion of the preceding write, that entry is extended to cover both writes.
    fn complete(&mut self, id: u32) {
        match self.notices.back_mut() {
            Some(Notice::ZeroCopy(_, last)) if *last == id || last.wrapping_add(1) == id => {
                *last = id;
            }
            _ => self.notices.push_back(Notice::ZeroCopy(id, id)),
        }
    }

    /// Removes the next entry, and returns it as control messages; `None` if there is no entry to
    /// read.
    fn read(&mut self) -> Option<Vec<ControlMessage>> {
        let message = |level, kind, data| ControlMessage {
            level: constant(level).unwrap_or(0),
            kind: constant(kind).unwrap_or(0),
            data,
        };
        let error = |error| message("SOL_IP", "IP_RECVERR", ControlData::Error(error));
        let number = |name| constant(name).unwrap_or(0);
        Some(match self.notices.pop_front()? {
            Notice::ZeroCopy(first, last) => vec![error(ExtendedError {
                errno: 0,
                origin: number("SO_EE_ORIGIN_ZEROCOPY"),
                kind: 0,
                // Linux reports this code if it had to copy the data of a zero-copy write. Here,
                // the data are always copied, because the script's link does not support
                // scatter-gather.
                code: number("SO_EE_CODE_ZEROCOPY_COPIED"),
                info: first.into(),
                data: last.into(),
            })],
            Notice::Timestamp { kind, key, at } => {
                let time = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
                let time = message("SOL_SOCKET", "SCM_TIMESTAMPING", ControlData::Time(time));
                let about = error(ExtendedError {
                    errno: i64::from(Errno::NOMSG.0),
                    origin: number("SO_EE_ORIGIN_TIMESTAMPING"),
                    kind: 0,
                    code: 0,
                    info: kind,
                    data: key.into(),
                });
                let reports = self.timestamping & SOFTWARE != 0;
                reports.then_some(time).into_iter().chain([about]).collect()
            }
        })
    }
}

impl StackMachine {
    /// Returns the error queue of a socket. Creates the queue on first use.
    pub(super) fn error_queue(&mut self, fd: i32) -> &mut ErrorQueue {
        let written = self.connection(fd).map_or(0, |connection| connection.unacknowledged_bytes());
        self.error_queues
            .entry(fd)
            .or_insert_with(|| ErrorQueue { written: written as u64, ..ErrorQueue::default() })
    }

    /// Executes `setsockopt(SO_TIMESTAMPING)`. If `SOF_TIMESTAMPING_OPT_ID` is newly set, the keys
    /// of timestamps count from the first byte that is unacknowledged now.
    pub(super) fn set_timestamping(&mut self, fd: i32, flags: i64) -> Result<(), Errno> {
        let connection = self.connection(fd).map(|connection| connection.unacknowledged_bytes());
        let queue = self.error_queue(fd);
        if flags & !queue.timestamping & OPT_ID != 0 {
            let unacknowledged = connection.map_err(|_| Errno::INVAL)? as u64;
            queue.first = queue.written.saturating_sub(unacknowledged);
        }
        queue.timestamping = flags;
        Ok(())
    }

    /// Adds a write to the error queue of a socket, if it has one. If `control` requests
    /// timestamps, creates the queue. The parameters are those of [`ErrorQueue::note_write`].
    pub(super) fn note_write(
        &mut self,
        fd: i32,
        taken: usize,
        is_last: bool,
        memory: Option<Bytes>,
        control: Option<&[ControlMessage]>,
    ) {
        let control =
            control.and_then(|list| list.first()).and_then(|message| match message.data {
                ControlData::Number(flags) => Some(flags & TX),
                _ => None,
            });
        if control.is_some() {
            self.error_queue(fd);
        }
        if let Some(queue) = self.error_queues.get_mut(&fd) {
            queue.note_write(taken, is_last, memory, control);
        }
    }

    /// Makes all entries readable whose data have been sent or acknowledged.
    pub(super) fn advance_error_queues(&mut self) {
        let at = self.now();
        let mut queues = std::mem::take(&mut self.error_queues);
        for (&fd, queue) in &mut queues {
            let Ok(connection) = self.connection(fd) else { continue };
            let unacknowledged = connection.unacknowledged_bytes() as u64;
            let unsent = connection.information().unsent.into();
            drop(connection);
            if queue.advance(at, unsent, unacknowledged) {
                self.sockets.note_socket(fd);
            }
        }
        self.error_queues = queues;
    }

    /// Executes `recvmsg` with `MSG_ERRQUEUE`, which never waits.
    pub(super) fn read_error_queue(&mut self, fd: i32) -> Result<Answer, Errno> {
        if self.sockets.get(fd).is_none() {
            return Err(Errno::BADF);
        }
        let control = self.error_queues.get_mut(&fd).and_then(ErrorQueue::read);
        let control = control.ok_or(Errno::AGAIN)?;
        Ok(Answer { result: Ok(0), output: Output::Message(Vec::new(), control) })
    }

    /// Returns whether an entry with a timestamp also has to contain the packet. This is so without
    /// `SOF_TIMESTAMPING_OPT_TSONLY`.
    pub(super) fn returns_packets(&self, fd: i32) -> bool {
        let wants = |queue: &ErrorQueue| {
            queue.timestamping & TX != 0 && queue.timestamping & OPT_TSONLY == 0
        };
        self.error_queues.get(&fd).is_some_and(wants)
    }
}
