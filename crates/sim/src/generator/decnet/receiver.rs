//! The receiver of a DECnet connection, which acknowledges every message.

use super::{DecnetParameters, KIND, read};
use crate::generator::{FrameCosts, FrameGenerator, Header};
use crate::program::ProgramReport;
use linerate_units::Tick;
use std::collections::VecDeque;

/// Maximum number of acknowledgements that wait for the wire. An acknowledgement beyond this number
/// is dropped, so the sender repeats the message.
const MOST_WAITING: usize = 64;

#[derive(Debug)]
pub(crate) struct DecnetReceiver {
    parameters: DecnetParameters,
    name: String,
    number: usize,
    sender: usize,
    /// Numbers of the messages whose acknowledgements wait for the wire.
    waiting: VecDeque<u32>,
    received: u64,
}

impl DecnetReceiver {
    pub(crate) const fn new(
        parameters: DecnetParameters,
        name: String,
        number: usize,
        sender: usize,
    ) -> Self {
        Self { parameters, name, number, sender, waiting: VecDeque::new(), received: 0 }
    }
}

impl FrameGenerator for DecnetReceiver {
    fn handle_time(&mut self, _: Tick) {}

    fn handle_frame(&mut self, _: Tick, frame: &[u8]) {
        let Some(header) = read(frame, self.number) else { return };
        self.received += 1;
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(header.numbers[0]);
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        read(frame, self.number).is_some()
    }

    fn poll_transmit(&mut self, _: Tick, room: &mut [u8]) -> Option<usize> {
        let number = self.waiting.pop_front()?;
        let header =
            Header { to: self.sender, from: self.number, kind: KIND, numbers: [number, 0, 0, 0] };
        Some(header.write(room, Header::SHORTEST))
    }

    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }

    fn costs(&self) -> FrameCosts {
        self.parameters.costs
    }

    /// Always returns true. The receiver never finishes by itself, so the simulation must not wait
    /// for it.
    fn is_finished(&self) -> bool {
        true
    }

    fn report(&self) -> ProgramReport {
        ProgramReport {
            complete: true,
            counted: vec![("received", self.received)],
            ..ProgramReport::new(&format!("{}: receiver", self.name))
        }
    }
}
