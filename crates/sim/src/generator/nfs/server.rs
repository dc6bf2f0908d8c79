//! The server, which has the file and answers one request after the other.

use super::{KIND, fragment_length, fragments, is_for};
use crate::generator::{FrameCosts, FrameGenerator, Header};
use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};
use std::collections::VecDeque;

/// Requests that a server queues, like a socket buffer; further ones are dropped.
const MOST_REQUESTS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NfsServerParameters {
    costs: FrameCosts,
    /// Time from the start of a request until its answer is ready: the time of the file system.
    service: Span,
}

impl NfsServerParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self { costs: FrameCosts::read(section)?, service: section.span("service")? })
    }
}

/// A request whose answer has not been sent completely.
#[derive(Clone, Copy, Debug)]
struct Request {
    from: usize,
    number: u32,
    attempt: u32,
    data: usize,
}

#[derive(Debug)]
pub(crate) struct NfsServer {
    parameters: NfsServerParameters,
    name: String,
    number: usize,
    requests: VecDeque<Request>,
    /// Fragments of the first request's answer that have been sent.
    sent: usize,
    ready: Tick,
    answered: u64,
    lost: u64,
}

impl NfsServer {
    pub(crate) const fn new(parameters: NfsServerParameters, name: String, number: usize) -> Self {
        Self {
            parameters,
            name,
            number,
            requests: VecDeque::new(),
            sent: 0,
            ready: Tick::NEVER,
            answered: 0,
            lost: 0,
        }
    }
}

impl FrameGenerator for NfsServer {
    fn handle_time(&mut self, _: Tick) {
        self.ready = Tick::ZERO;
    }

    fn handle_frame(&mut self, now: Tick, frame: &[u8]) {
        let Some(Header { from, numbers: [number, attempt, _, data], .. }) = Header::read(frame)
        else {
            return;
        };
        if self.requests.len() == MOST_REQUESTS {
            self.lost += 1;
            return;
        }
        self.requests.push_back(Request { from, number, attempt, data: data as usize });
        if self.requests.len() == 1 {
            self.ready = now + self.parameters.service;
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        is_for(frame, self.number)
    }

    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize> {
        if now < self.ready {
            return None;
        }
        let &Request { from, number, attempt, data } = self.requests.front()?;
        let (index, count) = (self.sent, fragments(data));
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let numbers = [number, small(index), small(count), attempt];
        let header = Header { to: from, from: self.number, kind: KIND, numbers };
        self.sent += 1;
        if self.sent == count {
            self.requests.pop_front();
            self.sent = 0;
            self.answered += 1;
            self.ready =
                if self.requests.is_empty() { Tick::NEVER } else { now + self.parameters.service };
        }
        Some(header.write(room, fragment_length(data, index)))
    }

    fn poll_timeout(&self) -> Tick {
        if self.ready == Tick::ZERO { Tick::NEVER } else { self.ready }
    }

    fn costs(&self) -> FrameCosts {
        self.parameters.costs
    }

    fn is_finished(&self) -> bool {
        true
    }

    fn report(&self) -> ProgramReport {
        ProgramReport {
            complete: true,
            counted: vec![("answers", self.answered), ("requests lost", self.lost)],
            ..ProgramReport::new(&self.name)
        }
    }
}
