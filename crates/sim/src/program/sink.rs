//! The task where the bytes go: it reads what is there, a packet at a time as the kernel's buffers held them, and
//! what the end of a read means for the window is TCP's to judge when the last of them is copied.

use super::content::first_wrong;
use super::socket::Socket;
use super::{Bulk, Charge, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};
use linerate_units::Tick;

#[derive(Debug)]
pub(crate) struct Sink {
    bulk: Bulk,
    does: Does,
    socket: Socket,
    read: u64,
    /// Bytes of the present read that are copied.
    copied: usize,
    /// Bytes that are copied at a time: a segment's.
    packet: usize,
    buffer: Vec<u8>,
    began: Option<Tick>,
    ended: Option<Tick>,
    wrong_at: Option<u64>,
}

/// What the task was doing when it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Begin,
    Accept,
    /// It goes into a read.
    Call,
    /// It waits in a read.
    Wait,
    /// It copies so many bytes.
    Copy(usize),
    End,
}

impl Sink {
    pub(crate) fn new(bulk: Bulk) -> Self {
        Self {
            buffer: Vec::new(),
            bulk,
            does: Does::Begin,
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
            self.does = Does::Accept;
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
        self.does = Does::Call;
        self.copied = 0;
        Step::Work(Charge { calls: 1, copied: 0 })
    }

    fn end(&mut self, task: &Task<'_>) {
        self.ended.get_or_insert(task.now);
        self.does = Does::End;
    }

    /// The next packet of this read, its end, or a sleep until there is something.
    fn next(&mut self, task: &mut Task<'_>) -> Step {
        let connection = self.socket.connection(task.stack);
        let there =
            connection.as_ref().map_or(0, |connection| connection.readable_bytes()) - self.copied;
        let over = connection.is_none_or(|connection| {
            connection.is_at_end_of_stream() || connection.error().is_some()
        });
        let length = there.min(self.packet).min(self.bulk.read_size - self.copied);
        if length > 0 {
            self.does = Does::Copy(length);
            return Step::Work(Charge { calls: 0, copied: length as u64 });
        }
        if self.copied > 0 {
            return self.end_read(task);
        }
        self.does = Does::Wait;
        if over {
            self.end(task);
        }
        Step::Sleep
    }

    /// The read returns.
    fn end_read(&mut self, task: &mut Task<'_>) -> Step {
        let Some(handle) = self.socket.handle() else { return Step::Sleep };
        // No larger than what was there, however much is asked for.
        self.buffer.resize(self.copied.max(self.buffer.len()), 0);
        let into = &mut self.buffer[..self.copied];
        let count = task.stack.tcp_read(task.clock, handle, into).unwrap_or(0);
        assert_eq!(count, self.copied, "what was copied was there");
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
        match self.does {
            Does::Begin => self.listen(task),
            Does::Accept => self.accept(task),
            Does::Call | Does::Wait => self.next(task),
            Does::Copy(length) => {
                self.copied += length;
                self.next(task)
            }
            Does::End => Step::Sleep,
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    fn is_over(&self) -> bool {
        self.does == Does::End
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
