//! The other end of a connection: it acknowledges every message that it hears.

use super::{DecnetParameters, KIND, read};
use crate::program::ProgramReport;
use crate::speaker::{Header, Labour, Speaker};
use linerate_units::Tick;
use std::collections::VecDeque;

/// Acknowledgements that wait; more are not made, and the message comes again.
const MOST_WAITING: usize = 64;

#[derive(Debug)]
pub(crate) struct DecnetReceiver {
    parameters: DecnetParameters,
    name: String,
    number: usize,
    sender: usize,
    /// Numbers of messages to acknowledge.
    waiting: VecDeque<u32>,
    heard: u64,
}

impl DecnetReceiver {
    pub(crate) const fn new(
        parameters: DecnetParameters,
        name: String,
        number: usize,
        sender: usize,
    ) -> Self {
        Self { parameters, name, number, sender, waiting: VecDeque::new(), heard: 0 }
    }
}

impl Speaker for DecnetReceiver {
    fn handle_time(&mut self, _: Tick) {}

    fn handle_frame(&mut self, _: Tick, frame: &[u8]) {
        let Some(header) = read(frame, self.number) else { return };
        self.heard += 1;
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

    fn labour(&self) -> Labour {
        self.parameters.labour
    }

    /// It listens as long as anybody speaks.
    fn is_over(&self) -> bool {
        true
    }

    fn report(&self) -> ProgramReport {
        ProgramReport {
            complete: true,
            counted: vec![("heard", self.heard)],
            ..ProgramReport::new(&format!("{}: receiver", self.name))
        }
    }
}
