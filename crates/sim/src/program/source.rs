//! The task where the bytes come from: it writes as long as there is room, a packet at a time as the 4.3BSD of that
//! year copied them, so that the first is on its way while the second is copied; as many as a card cuts, if it does.

use super::content::piece;
use super::socket::Socket;
use super::{Bulk, Charge, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};
use linerate_tcp::State;
use linerate_units::Tick;

/// Bytes of the headers of IPv4 and TCP with most of their options.
const MOST_HEADERS: usize = 20 + 60;

#[derive(Debug)]
pub(crate) struct Source {
    bulk: Bulk,
    does: Does,
    socket: Socket,
    written: u64,
    /// Bytes of the present write that are not in the kernel yet.
    left: usize,
    /// Bytes that are copied at a time: a segment's.
    packet: usize,
    began: Option<Tick>,
    ended: Option<Tick>,
}

/// What the task was doing when it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Begin,
    Connect,
    /// It waits for room, or begins a write.
    Write,
    /// It copies so many bytes.
    Copy(usize),
    End,
}

impl Source {
    pub(crate) const fn new(bulk: Bulk) -> Self {
        Self {
            bulk,
            does: Does::Begin,
            socket: Socket::new(),
            written: 0,
            left: 0,
            packet: 1,
            began: None,
            ended: None,
        }
    }

    fn connect(&mut self, task: &mut Task<'_>) -> Step {
        if self.socket.connect(task, self.bulk.local, self.bulk.address, &self.bulk.config) {
            self.does = Does::Connect;
        } else {
            self.end(task);
        }
        Step::Sleep
    }

    fn end(&mut self, task: &Task<'_>) {
        self.ended.get_or_insert(task.now);
        self.does = Does::End;
    }

    fn begin_when_connected(&mut self, task: &mut Task<'_>) -> Step {
        let Some(connection) = self.socket.connection(task.stack) else {
            return Step::Sleep;
        };
        match connection.state() {
            State::Established => {
                self.packet = self.piece(connection.effective_mss().max(1));
                self.began = Some(task.now);
                self.does = Does::Write;
                self.next(task)
            }
            State::Closed => {
                self.end(task);
                Step::Sleep
            }
            _ => Step::Sleep,
        }
    }

    /// What is copied at a time: a segment, or as many as the card cuts, because the kernel fills a super-frame before
    /// it sends it.
    const fn piece(&self, segment: usize) -> usize {
        let segments = self.bulk.super_packet.saturating_sub(MOST_HEADERS) / segment;
        if segments > 1 { segments * segment } else { segment }
    }

    /// The next packet of this write, or the next write, or a sleep until there is room.
    fn next(&mut self, task: &mut Task<'_>) -> Step {
        let remaining = usize::try_from(self.bulk.bytes - self.written).unwrap_or(usize::MAX);
        if self.left == 0 {
            self.left = self.bulk.write_size.min(remaining);
            self.does = Does::Write;
            return Step::Work(Charge { calls: 1, copied: 0 });
        }
        let connection = self.socket.connection(task.stack);
        let room = connection.map_or(0, |connection| connection.writable_bytes());
        let length = room.min(self.packet).min(self.left);
        if length == 0 {
            self.ask_for_room(task);
            self.does = Does::Write;
            return Step::Sleep;
        }
        self.does = Does::Copy(length);
        Step::Work(Charge { calls: 0, copied: length as u64 })
    }

    /// There is no room, and the host tells of it only whom it has refused some.
    fn ask_for_room(&self, task: &mut Task<'_>) {
        let Some(handle) = self.socket.handle() else { return };
        let written = task.stack.tcp_write(task.clock, handle, piece(self.written, 1));
        assert!(!matches!(written, Ok(1..)), "there was no room");
    }

    fn write(&mut self, task: &mut Task<'_>, length: usize) -> Step {
        let Some(handle) = self.socket.handle() else { return Step::Sleep };
        let Ok(written) = task.stack.tcp_write(task.clock, handle, piece(self.written, length))
        else {
            self.end(task);
            return Step::Sleep;
        };
        self.written += written as u64;
        self.left -= written;
        if self.written == self.bulk.bytes {
            // The end of the stream, which the sink is free not to wait for.
            let _ = task.stack.tcp_shutdown_write(task.clock, handle);
            self.end(task);
            return Step::Sleep;
        }
        self.next(task)
    }
}

impl Program for Source {
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step {
        match self.does {
            Does::Begin => self.connect(task),
            Does::Connect => self.begin_when_connected(task),
            Does::Write => self.next(task),
            Does::Copy(length) => self.write(task, length),
            Does::End => Step::Sleep,
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    fn is_over(&self) -> bool {
        // The sink says when a transfer is over; a source that has lost its connection says so itself.
        self.does == Does::End
    }

    fn report(&self, stack: &Stack) -> ProgramReport {
        ProgramReport {
            bytes: self.written,
            began: self.began,
            ended: self.ended,
            complete: self.written == self.bulk.bytes,
            tcp: self.socket.report(stack),
            ..ProgramReport::new(&format!("{}: source", self.bulk.name))
        }
    }
}
