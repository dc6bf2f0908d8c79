//! The sender of a blast transfer.

use super::{BlastParameters, HEADERS, KIND, read};
use crate::generator::{FrameCosts, FrameGenerator, Header};
use crate::program::ProgramReport;
use linerate_units::Tick;

#[derive(Debug)]
pub(crate) struct BlastSender {
    parameters: BlastParameters,
    name: String,
    number: usize,
    to: usize,
    blast: u32,
    /// Number of frames of the current blast that have been sent.
    made: u64,
    /// Time at which the current blast is repeated, unless it is acknowledged before. `Tick::NEVER`
    /// until all frames of the blast have been sent.
    again: Tick,
    repeated: u64,
    ended: Option<Tick>,
}

impl BlastSender {
    pub(crate) const fn new(
        parameters: BlastParameters,
        name: String,
        number: usize,
        to: usize,
    ) -> Self {
        Self {
            parameters,
            name,
            number,
            to,
            blast: 0,
            made: 0,
            again: Tick::NEVER,
            repeated: 0,
            ended: None,
        }
    }
}

impl FrameGenerator for BlastSender {
    /// Repeats the current blast, which was not acknowledged in time.
    fn handle_time(&mut self, _: Tick) {
        (self.made, self.again) = (0, Tick::NEVER);
        self.repeated += 1;
    }

    fn handle_frame(&mut self, now: Tick, frame: &[u8]) {
        let acknowledged = read(frame, self.number).map(|header| header.numbers[0]);
        if acknowledged != Some(self.blast) || self.ended.is_some() {
            return;
        }
        (self.blast, self.made, self.again) = (self.blast + 1, 0, Tick::NEVER);
        if self.parameters.of_blast(self.blast) == 0 {
            self.ended = Some(now);
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        read(frame, self.number).is_some()
    }

    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize> {
        let count = self.parameters.of_blast(self.blast);
        if self.made >= count || self.ended.is_some() {
            return None;
        }
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let numbers = [self.blast, small(self.made), small(count), 0];
        self.made += 1;
        if self.made == count {
            self.again = now + self.parameters.timeout;
        }
        let header = Header { to: self.to, from: self.number, kind: KIND, numbers };
        Some(header.write(room, HEADERS + self.parameters.data))
    }

    fn poll_timeout(&self) -> Tick {
        self.again
    }

    fn costs(&self) -> FrameCosts {
        self.parameters.costs
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    fn report(&self) -> ProgramReport {
        let frames = u64::from(self.blast) * self.parameters.frames;
        ProgramReport {
            bytes: (frames * self.parameters.data as u64).min(self.parameters.bytes),
            began: Some(Tick::ZERO),
            ended: self.ended,
            complete: self.ended.is_some(),
            counted: vec![("blasts", u64::from(self.blast)), ("repeated", self.repeated)],
            ..ProgramReport::new(&self.name)
        }
    }
}
