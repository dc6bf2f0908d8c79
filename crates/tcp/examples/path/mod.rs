//! Simulates a transfer between two connections in virtual time, over a path that loses one segment
//! in fifty.

use linerate_tcp::{Config, CongestionName, Connection, Offload, Path, Seeds};
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, SeqNum};
use std::collections::VecDeque;

/// The number of bytes that the transfer sends.
pub(crate) const TRANSFER: usize = 8 << 20;
const DELAY: Duration = Duration::from_millis(10);
const MTU: usize = 1_500;
const LOST: u64 = 50;

/// One direction of the path: the segments in flight with their arrival times, and the number of
/// segments sent.
#[derive(Default)]
struct Direction {
    segments: VecDeque<(Instant, Vec<u8>)>,
    sent: u64,
}

impl Direction {
    fn send(&mut self, now: Instant, segment: &[u8], is_lossy: bool) {
        self.sent += 1;
        if !(is_lossy && self.sent.is_multiple_of(LOST)) {
            self.segments.push_back((now + DELAY, segment.to_vec()));
        }
    }

    fn next(&self) -> Instant {
        self.segments.front().map_or(Instant::NEVER, |(at, _)| *at)
    }

    fn take(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.segments.pop_front_if(|(at, _)| *at <= now).map(|(_, segment)| segment)
    }
}

/// Sends [`TRANSFER`] bytes from one connection to the other. Returns the time that the transfer
/// takes in virtual time, and the number of retransmitted segments.
pub(crate) fn transfer(congestion: CongestionName) -> (Duration, u64) {
    let config = Config { congestion, ..Config::modern() };
    let seeds = |number| Seeds { initial_sequence: SeqNum::new(number), timestamp_offset: 0 };
    let path = Path::ipv4(MTU);
    let mut frame = [0; MTU];
    let mut now = Instant::ZERO;
    let mut sender = Connection::connect(config, path, seeds(1), now);
    let mut receiver: Option<Connection> = None;
    let (mut forward, mut back) = (Direction::default(), Direction::default());
    let (mut written, mut read) = (0, 0);
    let (data, mut into) = (vec![0; 1 << 16], vec![0; 1 << 16]);

    while read < TRANSFER {
        while let Some(bytes) = forward.take(now) {
            let segment = Segment::parse(&bytes).expect("a connection sends valid segments");
            match &mut receiver {
                Some(receiver) => _ = receiver.driver().handle_segment(now, &segment),
                None => receiver = Some(Connection::accept(config, path, seeds(2), &segment, now)),
            }
        }
        while let Some(bytes) = back.take(now) {
            let segment = Segment::parse(&bytes).expect("a connection sends valid segments");
            _ = sender.driver().handle_segment(now, &segment);
        }
        sender.driver().handle_timeout(now);
        let left = data.len().min(TRANSFER - written);
        written += sender.write(now, &data[..left]).unwrap_or(0);
        while let Some(sent) = sender.driver().poll_transmit(now, Offload::None, &mut frame) {
            forward.send(now, &frame[..sent.length], true);
        }
        if let Some(receiver) = &mut receiver {
            receiver.driver().handle_timeout(now);
            read += receiver.read(now, &mut into).unwrap_or(0);
            while let Some(sent) = receiver.driver().poll_transmit(now, Offload::None, &mut frame) {
                back.send(now, &frame[..sent.length], false);
            }
        }
        let timeout = receiver.as_ref().map_or(Instant::NEVER, Connection::poll_timeout);
        let next = forward.next().min(back.next()).min(sender.poll_timeout()).min(timeout);
        now = now.max(next);
    }
    (now.since(Instant::ZERO), sender.statistics().retransmitted_segments)
}
