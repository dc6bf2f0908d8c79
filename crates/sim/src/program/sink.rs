//! The receiving task of a bulk transfer. Each read copies one segment after the other, because
//! each kernel buffer of 1988 held one segment. TCP considers a window update only at the end of a
//! read, not after each segment.

use super::content::first_wrong;
use super::socket::Socket;
use super::{Bulk, Charge, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};
use linerate_units::Tick;

#[derive(Debug)]
pub(crate) struct Sink {
    bulk: Bulk,
    state: State,
    socket: Socket,
    read: u64,
    /// Number of bytes that the read in progress has copied so far.
    copied: usize,
    /// Number of bytes copied in one step: a segment.
    packet: usize,
    buffer: Vec<u8>,
    began: Option<Tick>,
    ended: Option<Tick>,
    wrong_at: Option<u64>,
}

/// The state of the task: the step whose processor time is passing. The step takes effect when the
/// task runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Accept,
    /// Enters the system call of a read.
    Call,
    /// Waits in a read until data arrive.
    Wait,
    /// Copies this many bytes.
    Copy(usize),
    End,
}

impl Sink {
    pub(crate) fn new(bulk: Bulk) -> Self {
        Self {
            buffer: Vec::new(),
            bulk,
            state: State::Begin,
            socket: Socket::new(),
            read: 0,
            copied: 0,
            packet: 1,
            began: None,
            ended: None,
            wrong_at: None,
        }
    }

    fn listen(&mut self, task: &mut Task<'_>) -> Step {
        if self.socket.listen(task, self.bulk.address, &self.bulk.config) {
            self.state = State::Accept;
        } else {
            self.end(task);
        }
        Step::Sleep
    }

    fn accept(&mut self, task: &mut Task<'_>) -> Step {
        if !self.socket.accept(task) {
            return Step::Sleep;
        }
        let connection = self.socket.connection(task.stack);
        self.packet = connection.map_or(1, |connection| connection.effective_mss().max(1));
        self.began = Some(task.now);
        self.call()
    }

    const fn call(&mut self) -> Step {
        self.state = State::Call;
        self.copied = 0;
        Step::Work(Charge { calls: 1, copied: 0 })
    }

    fn end(&mut self, task: &Task<'_>) {
        self.ended.get_or_insert(task.now);
        self.state = State::End;
    }

    /// Returns the next step: copying another segment in this read, entering the next read after
    /// this one has ended, or sleeping until data arrive.
    fn next(&mut self, task: &mut Task<'_>) -> Step {
        let connection = self.socket.connection(task.stack);
        let there =
            connection.as_ref().map_or(0, |connection| connection.readable_bytes()) - self.copied;
        let over = connection.is_none_or(|connection| {
            connection.is_at_end_of_stream() || connection.error().is_some()
        });
        let length = there.min(self.packet).min(self.bulk.read_size - self.copied);
        if length > 0 {
            self.state = State::Copy(length);
            return Step::Work(Charge { calls: 0, copied: length as u64 });
        }
        if self.copied > 0 {
            return self.end_read(task);
        }
        self.state = State::Wait;
        if over {
            self.end(task);
        }
        Step::Sleep
    }

    /// Ends the read, verifies its bytes, and returns the next step.
    fn end_read(&mut self, task: &mut Task<'_>) -> Step {
        let Some(handle) = self.socket.handle() else { return Step::Sleep };
        // The application reads up to `read_size` bytes at once, which may be huge. The buffer
        // therefore grows only to the number of bytes that a read returns.
        self.buffer.resize(self.copied.max(self.buffer.len()), 0);
        let into = &mut self.buffer[..self.copied];
        let count = task.stack.tcp_read(task.clock, handle, into).unwrap_or(0);
        assert_eq!(count, self.copied, "the bytes copied were available");
        if self.bulk.verify && self.wrong_at.is_none() {
            self.wrong_at = first_wrong(self.read, &self.buffer[..count]);
        }
        self.read += count as u64;
        if self.read >= self.bulk.bytes {
            self.end(task);
            return Step::Sleep;
        }
        self.call()
    }
}

impl Program for Sink {
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step {
        match self.state {
            State::Begin => self.listen(task),
            State::Accept => self.accept(task),
            State::Call | State::Wait => self.next(task),
            State::Copy(length) => {
                self.copied += length;
                self.next(task)
            }
            State::End => Step::Sleep,
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    fn is_finished(&self) -> bool {
        self.state == State::End
    }

    fn report(&self, stack: &Stack) -> ProgramReport {
        ProgramReport {
            bytes: self.read,
            began: self.began,
            ended: self.ended,
            complete: self.read >= self.bulk.bytes,
            wrong_at: self.wrong_at,
            tcp: self.socket.report(stack),
            ..ProgramReport::new(&format!("{}: sink", self.bulk.name))
        }
    }
}
