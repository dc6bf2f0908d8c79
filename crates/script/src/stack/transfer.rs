//! Executes reads and writes on linerate's host.

use super::StackMachine;
use super::calls::{DONT_WAIT, END_OF_RECORD, ERROR_QUEUE, MORE, OUT_OF_BAND, PEEK, ZERO_COPY};
use super::error_queue::ErrorQueue;
use crate::machine::{Answer, Output};
use crate::syntax::{ControlData, ControlMessage, Errno, Transfer, constant};
use bytes::Bytes;
use linerate_stack::{Error, TcpHandle};

impl StackMachine {
    pub(super) fn read(&mut self, transfer: &Transfer) -> Option<Result<Answer, Errno>> {
        if transfer.flags & ERROR_QUEUE != 0 {
            return Some(self.read_error_queue(transfer.fd));
        }
        let handle = match self.handle(transfer.fd) {
            Ok(handle) => handle,
            Err(errno) => return Some(Err(errno)),
        };
        let waits = !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0;
        let mut bytes = vec![0; transfer.count];
        let stack = self.host.stack_mut();
        let result = if transfer.flags & PEEK == 0 {
            stack.tcp_read(self.now, handle, &mut bytes)
        } else {
            stack.tcp_peek(handle, &mut bytes)
        };
        match result {
            Ok(count) => {
                bytes.truncate(count);
                let value = i64::try_from(count).unwrap_or(i64::MAX);
                let output = Output::Message(bytes, self.left_to_read(transfer.fd));
                Some(Ok(Answer { result: Ok(value), output }))
            }
            Err(Error::WouldBlock) if waits => None,
            Err(Error::WouldBlock) => Some(Err(Errno::AGAIN)),
            Err(_) => Some(self.take_error(transfer.fd).map_or(Ok(Answer::of(0)), Err)),
        }
    }

    pub(super) fn write(&mut self, transfer: &Transfer) -> Option<Result<Answer, Errno>> {
        let handle = match self.handle(transfer.fd) {
            Ok(handle) => handle,
            Err(Errno::NOTCONN) => return Some(Err(Errno::PIPE)),
            Err(errno) => return Some(Err(errno)),
        };
        let waits = !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0;
        let queue = self.error_queues.get(&transfer.fd);
        if queue.is_some_and(ErrorQueue::is_full) {
            return Some(Err(Errno::NOBUFS));
        }
        let is_shared =
            transfer.flags & ZERO_COPY != 0 && queue.is_some_and(|queue| queue.zero_copy);
        let mut bytes = transfer.data.clone().unwrap_or_default();
        bytes.resize(transfer.count, 0);
        let rest = &bytes[self.written.min(bytes.len())..];
        let memory = is_shared.then(|| Bytes::copy_from_slice(rest));
        let stack = self.host.stack_mut();
        let result = if let Some(memory) = &memory {
            stack.tcp_write_shared(self.now, handle, &mut memory.clone())
        } else if transfer.flags & OUT_OF_BAND == 0 {
            stack.tcp_write(self.now, handle, rest)
        } else {
            stack.tcp_write_urgent(self.now, handle, rest)
        };
        match result {
            Ok(taken) => {
                self.written += taken;
                self.mark_end(handle, transfer);
                let is_last = self.written == transfer.count || !waits;
                let memory = memory.filter(|_| taken > 0);
                self.note_write(transfer.fd, taken, is_last, memory, transfer.control.as_deref());
            }
            Err(_) => return Some(Err(self.take_error(transfer.fd).unwrap_or(Errno::PIPE))),
        }
        let written = i64::try_from(self.written).unwrap_or(i64::MAX);
        if self.written == transfer.count || !waits && self.written > 0 {
            Some(Ok(Answer::of(written)))
        } else if waits {
            None
        } else {
            Some(Err(Errno::AGAIN))
        }
    }

    /// Returns the control message of `TCP_INQ`, which contains the number of unread bytes.
    fn left_to_read(&self, fd: i32) -> Vec<ControlMessage> {
        if !self.inquiring.contains(&fd) {
            return Vec::new();
        }
        let left = self.connection(fd).map_or(0, |connection| connection.readable_bytes());
        vec![ControlMessage {
            level: constant("SOL_TCP").unwrap_or(0),
            kind: constant("TCP_CM_INQ").unwrap_or(0),
            data: ControlData::Number(i64::try_from(left).unwrap_or(i64::MAX)),
        }]
    }

    /// Tells the connection what follows the data just written: more data soon (`MSG_MORE`), or the
    /// end of a record (`MSG_EOR`). It is not too late for that, because the host sends nothing
    /// before its next turn.
    fn mark_end(&mut self, handle: TcpHandle, transfer: &Transfer) {
        let is_whole = self.written == transfer.count;
        let stack = self.host.stack_mut();
        let _ = stack.tcp_configure(self.now, handle, |connection| {
            if transfer.flags & MORE != 0 {
                connection.expect_more();
            }
            if is_whole && transfer.flags & END_OF_RECORD != 0 {
                connection.end_record();
            }
        });
    }
}
