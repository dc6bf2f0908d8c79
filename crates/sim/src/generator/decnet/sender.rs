//! The DECnet sender, which has many connections and one buffer pool.

use super::{DecnetParameters, KIND, read};
use crate::generator::{FrameCosts, FrameGenerator, Header};
use crate::program::ProgramReport;
use linerate_units::Tick;
use std::collections::VecDeque;

#[derive(Debug)]
pub(crate) struct DecnetSender {
    parameters: DecnetParameters,
    name: String,
    number: usize,
    connections: Vec<Connection>,
    /// Messages and repetitions of all connections that wait for the wire. Invariant: each entry
    /// occupies a buffer of the pool.
    waiting: VecDeque<Waiting>,
    /// Number of bytes of the pool that are in use. Invariant: at most `parameters.pool`.
    taken: usize,
    /// Time after which no new messages are generated.
    end: Tick,
    counted: Counted,
}

#[derive(Debug)]
struct Connection {
    /// Number of the receiver's NIC, which its MAC address contains.
    peer: usize,
    /// Time and number of the next new message.
    next: Tick,
    number: u32,
    /// Messages that have not been acknowledged.
    open: Vec<Message>,
    /// Number of repetitions of this connection's messages that wait for the wire.
    repetitions: u64,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    number: u32,
    repeated: u32,
    /// Time at which the message is repeated next.
    again: Tick,
}

/// A message that waits for the wire: a new one, or a repetition of an unacknowledged one.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    connection: usize,
    number: u32,
    is_repetition: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    made: u64,
    acknowledged: u64,
    repeated: u64,
    /// Number of messages and repetitions that were not sent because the pool had no free buffer.
    refused: u64,
    /// Peak number of repetitions of one connection that waited for the wire.
    queued: u64,
    /// Peak number of bytes of the pool that were in use.
    pool: usize,
}

impl DecnetSender {
    /// Creates a sender with a connection to each peer. The times of the connections' first
    /// messages are evenly distributed over one interval.
    pub(crate) fn new(
        parameters: DecnetParameters,
        name: String,
        number: usize,
        peers: &[usize],
    ) -> Self {
        let count = peers.len().max(1) as u64;
        let connections = (0..).zip(peers).map(|(place, &peer)| Connection {
            peer,
            next: Tick::ZERO + parameters.interval * place / count,
            number: 0,
            open: Vec::new(),
            repetitions: 0,
        });
        Self {
            parameters,
            name,
            number,
            connections: connections.collect(),
            waiting: VecDeque::new(),
            taken: 0,
            end: Tick::ZERO + parameters.time,
            counted: Counted::default(),
        }
    }

    /// Takes a buffer from the pool. Returns false if none is free.
    fn take_buffer(&mut self) -> bool {
        let has_room = self.taken + self.parameters.buffer <= self.parameters.pool;
        if has_room {
            self.taken += self.parameters.buffer;
            self.counted.pool = self.counted.pool.max(self.taken);
        } else {
            self.counted.refused += 1;
        }
        has_room
    }

    /// Generates a message of connection `index`, if its window and the pool have room.
    fn make(&mut self, now: Tick, index: usize) {
        self.connections[index].next = now + self.parameters.interval;
        if self.connections[index].open.len() >= self.parameters.window || !self.take_buffer() {
            return;
        }
        let connection = &mut self.connections[index];
        let number = connection.number;
        connection.number += 1;
        connection.open.push(Message { number, repeated: 0, again: now + self.parameters.wait(0) });
        self.counted.made += 1;
        self.waiting.push_back(Waiting { connection: index, number, is_repetition: false });
    }

    /// Queues a repetition of a message, if the pool has a free buffer. Otherwise the message waits
    /// for its next timeout. `place` is the index of the message among the unacknowledged ones of
    /// connection `index`.
    fn repeat(&mut self, now: Tick, index: usize, place: usize) {
        let message = &mut self.connections[index].open[place];
        message.repeated += 1;
        message.again = now + self.parameters.wait(message.repeated);
        let number = message.number;
        if self.take_buffer() {
            self.counted.repeated += 1;
            let connection = &mut self.connections[index];
            connection.repetitions += 1;
            self.counted.queued = self.counted.queued.max(connection.repetitions);
            self.waiting.push_back(Waiting { connection: index, number, is_repetition: true });
        }
    }
}

impl FrameGenerator for DecnetSender {
    fn handle_time(&mut self, now: Tick) {
        for index in 0..self.connections.len() {
            if self.connections[index].next <= now {
                self.make(now, index);
            }
            for place in 0..self.connections[index].open.len() {
                if self.connections[index].open[place].again <= now {
                    self.repeat(now, index, place);
                }
            }
        }
    }

    fn handle_frame(&mut self, _: Tick, frame: &[u8]) {
        let Some(Header { from, numbers, .. }) = read(frame, self.number) else { return };
        let Some(connection) =
            self.connections.iter_mut().find(|connection| connection.peer == from)
        else {
            return;
        };
        let acknowledged = connection.open.iter().position(|message| message.number == numbers[0]);
        if let Some(place) = acknowledged {
            connection.open.swap_remove(place);
            self.taken -= self.parameters.buffer;
            self.counted.acknowledged += 1;
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        read(frame, self.number).is_some()
    }

    fn poll_transmit(&mut self, _: Tick, room: &mut [u8]) -> Option<usize> {
        let Waiting { connection, number, is_repetition } = self.waiting.pop_front()?;
        let connection = &mut self.connections[connection];
        if is_repetition {
            connection.repetitions -= 1;
            self.taken -= self.parameters.buffer;
        }
        let (to, numbers) = (connection.peer, [number, 0, 0, 0]);
        let header = Header { to, from: self.number, kind: KIND, numbers };
        Some(header.write(room, self.parameters.message))
    }

    fn poll_timeout(&self) -> Tick {
        let due = |connection: &Connection| {
            let again =
                connection.open.iter().map(|message| message.again).min().unwrap_or(Tick::NEVER);
            again.min(connection.next)
        };
        self.connections.iter().map(due).min().unwrap_or(Tick::NEVER)
    }

    fn costs(&self) -> FrameCosts {
        self.parameters.costs
    }

    /// Returns true once no connection has another message to generate before the configured end.
    /// The simulation does not wait for acknowledgements of the messages.
    fn is_finished(&self) -> bool {
        self.connections.iter().all(|connection| connection.next >= self.end)
    }

    fn report(&self) -> ProgramReport {
        let Counted { made, acknowledged, repeated, refused, queued, pool } = self.counted;
        ProgramReport {
            bytes: acknowledged * self.parameters.message as u64,
            began: Some(Tick::ZERO),
            complete: self.is_finished(),
            counted: vec![
                ("messages", made),
                ("acknowledged", acknowledged),
                ("repeated", repeated),
                ("queued", queued),
                ("refused", refused),
                ("pool", pool as u64),
            ],
            ..ProgramReport::new(&self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Backoff;
    use super::*;
    use linerate_units::Span;

    const SECOND: u64 = 1_000_000_000_000;

    fn seconds(count: u64) -> Tick {
        Tick::from_picos(count * SECOND)
    }

    /// Creates a sender with one connection, one new message per hour, and a pool of this many
    /// buffers.
    fn sender(backoff: Backoff, buffers: usize) -> DecnetSender {
        let parameters = DecnetParameters {
            costs: FrameCosts::default(),
            message: 100,
            interval: Span::from_picos(3_600 * SECOND),
            window: 8,
            timeout: Span::from_picos(SECOND),
            backoff,
            pool: buffers * 500,
            buffer: 500,
            time: Span::from_picos(SECOND),
        };
        DecnetSender::new(parameters, "vms".to_owned(), 0, &[1])
    }

    /// Returns the times of the sender's first `count` repetitions of its message. The wire is
    /// blocked, so no repetition is sent.
    fn repetitions(sender: &mut DecnetSender, count: usize) -> Vec<u64> {
        sender.handle_time(Tick::ZERO);
        let mut times = Vec::new();
        for _ in 0..count {
            let at = sender.poll_timeout();
            times.push(at.as_picos() / SECOND);
            sender.handle_time(at);
        }
        times
    }

    #[test]
    fn the_time_between_repetitions_grows_linearly_or_exponentially() {
        assert_eq!(repetitions(&mut sender(Backoff::Linear, 9), 5), [1, 3, 6, 10, 15]);
        assert_eq!(repetitions(&mut sender(Backoff::Exponential, 9), 5), [1, 3, 7, 15, 31]);
    }

    #[test]
    fn repetitions_that_wait_for_the_wire_exhaust_the_pool_until_they_are_sent() {
        let mut sender = sender(Backoff::Linear, 4);
        repetitions(&mut sender, 6);
        let Counted { repeated, refused, queued, .. } = sender.counted;
        assert_eq!((repeated, refused, queued), (3, 3, 3), "the message holds the fourth buffer");
        let mut room = [0; 1_514];
        let sent = std::iter::from_fn(|| sender.poll_transmit(seconds(30), &mut room)).count();
        assert_eq!(
            (sent, sender.taken),
            (4, 500),
            "the message holds its buffer until it is acknowledged"
        );
        let header = Header { to: 0, from: 1, kind: KIND, numbers: [0; 4] };
        let length = header.write(&mut room, 60);
        sender.handle_frame(seconds(31), &room[..length]);
        sender.handle_frame(seconds(31), &room[..length]);
        assert_eq!((sender.taken, sender.counted.acknowledged), (0, 1));
    }
}
