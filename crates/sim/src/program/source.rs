//! The sending task of a bulk transfer. As in 4.3BSD, each write copies one segment after the other
//! into the send buffer, while the buffer has room. The host can thus send a segment while the next
//! one is copied. With TSO, the task copies the data of a whole GSO frame at a time.

use super::content::piece;
use super::socket::Socket;
use super::{Bulk, Charge, Program, ProgramReport, Step, Task};
use linerate_stack::{Event, Stack};
use linerate_tcp::State;
use linerate_units::Tick;
use linerate_wire::{Ipv4Header, Ipv6Header};
use std::net::SocketAddr;

/// Maximum size of the TCP header, in bytes.
const MOST_TCP_HEADER: usize = 60;

#[derive(Debug)]
pub(crate) struct Source {
    bulk: Bulk,
    phase: Phase,
    socket: Socket,
    written: u64,
    /// Number of bytes of the write in progress that have not been copied yet.
    left: usize,
    /// Number of bytes copied in one step: a segment, or with TSO the data of a GSO frame.
    packet: usize,
    began: Option<Tick>,
    ended: Option<Tick>,
}

/// The state of the task: the step whose processor time is passing. The step takes effect when the
/// task runs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Connect,
    /// Waits for room in the send buffer, or enters the system call of a write.
    Write,
    /// Copies this many bytes.
    Copy(usize),
    End,
}

impl Source {
    pub(crate) const fn new(bulk: Bulk) -> Self {
        Self {
            bulk,
            phase: Phase::Begin,
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
            self.phase = Phase::Connect;
        } else {
            self.end(task);
        }
        Step::Sleep
    }

    fn end(&mut self, task: &Task<'_>) {
        self.ended.get_or_insert(task.now);
        self.phase = Phase::End;
    }

    fn begin_when_connected(&mut self, task: &mut Task<'_>) -> Step {
        let Some(connection) = self.socket.connection(task.stack) else {
            return Step::Sleep;
        };
        match connection.state() {
            State::Established => {
                self.packet = self.piece(connection.effective_mss().max(1));
                self.began = Some(task.now);
                self.phase = Phase::Write;
                self.next(task)
            }
            State::Closed => {
                self.end(task);
                Step::Sleep
            }
            _ => Step::Sleep,
        }
    }

    /// Returns the number of bytes to copy in one step. Without TSO this is a segment. With TSO it
    /// is as many whole segments as fit a GSO frame, because a kernel also fills a GSO frame before
    /// it sends the frame.
    const fn piece(&self, segment: usize) -> usize {
        let headers = ip_header_length(&self.bulk.address) + MOST_TCP_HEADER;
        let segments = self.bulk.gso_max_size.saturating_sub(headers) / segment;
        if segments > 1 { segments * segment } else { segment }
    }

    /// Returns the next step: copying another segment in this write, entering the next write after
    /// this one has ended, or sleeping until the send buffer has room.
    fn next(&mut self, task: &mut Task<'_>) -> Step {
        let remaining = usize::try_from(self.bulk.bytes - self.written).unwrap_or(usize::MAX);
        if self.left == 0 {
            self.left = self.bulk.write_size.min(remaining);
            self.phase = Phase::Write;
            return Step::Work(Charge { calls: 1, copied: 0 });
        }
        let connection = self.socket.connection(task.stack);
        let room = connection.map_or(0, |connection| connection.writable_bytes());
        let length = room.min(self.packet).min(self.left);
        if length == 0 {
            self.ask_for_room(task);
            self.phase = Phase::Write;
            return Step::Sleep;
        }
        self.phase = Phase::Copy(length);
        Step::Work(Charge { calls: 0, copied: length as u64 })
    }

    /// Makes the host report when the send buffer has room again. The host does so only after it
    /// has refused a write, so this function makes a write that will be refused.
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
        if written == 0 {
            // The host has taken nothing, because it has no memory for more data. After such a
            // refusal it reports when memory is free again, so the source can sleep until then.
            self.phase = Phase::Write;
            return Step::Sleep;
        }
        self.written += written as u64;
        self.left -= written;
        if self.written == self.bulk.bytes {
            // Close only the sending direction, because the sink still has to read the data.
            let _ = task.stack.tcp_shutdown_write(task.clock, handle);
            self.end(task);
            return Step::Sleep;
        }
        self.next(task)
    }
}

/// Returns the length of the IP header of packets to an address.
const fn ip_header_length(address: &SocketAddr) -> usize {
    if address.is_ipv4() { Ipv4Header::LENGTH } else { Ipv6Header::LENGTH }
}

impl Program for Source {
    fn handle_run(&mut self, task: &mut Task<'_>) -> Step {
        match self.phase {
            Phase::Begin => self.connect(task),
            Phase::Connect => self.begin_when_connected(task),
            Phase::Write => self.next(task),
            Phase::Copy(length) => self.write(task, length),
            Phase::End => Step::Sleep,
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.socket.wants(event)
    }

    fn is_finished(&self) -> bool {
        // A source has finished when it has written all bytes, or when its connection has failed.
        // The data may still be on the way, so the simulation continues until the sink has
        // finished, too.
        self.phase == Phase::End
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
