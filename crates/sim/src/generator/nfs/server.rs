//! The NFS server, which has the file and answers one request at a time.

use super::{HEADERS, Numbers, SERVER_PORT};
use crate::generator::datagram_host::{DatagramHost, DatagramPlace, LARGEST_DATAGRAM};
use crate::generator::{FrameCosts, FrameGenerator};
use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Maximum number of requests that a server queues. Requests beyond this number are dropped, as if
/// the server's socket buffer were full.
const MOST_REQUESTS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NfsServerParameters {
    costs: FrameCosts,
    /// Time from the start of a request's processing by the server's file system until the answer
    /// is ready to be sent.
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
    from: SocketAddr,
    numbers: Numbers,
}

#[derive(Debug)]
pub(crate) struct NfsServer {
    parameters: NfsServerParameters,
    name: String,
    host: DatagramHost,
    requests: VecDeque<Request>,
    /// Whether the answer to the oldest queued request is being sent.
    is_answering: bool,
    ready: Tick,
    answered: u64,
    lost: u64,
}

impl NfsServer {
    pub(crate) fn new(parameters: NfsServerParameters, name: String, place: DatagramPlace) -> Self {
        Self {
            parameters,
            name,
            host: DatagramHost::new(place, SERVER_PORT),
            requests: VecDeque::new(),
            is_answering: false,
            ready: Tick::NEVER,
            answered: 0,
            lost: 0,
        }
    }
}

impl NfsServer {
    fn handle_request(&mut self, now: Tick, request: Request) {
        if self.requests.len() == MOST_REQUESTS {
            self.lost += 1;
            return;
        }
        self.requests.push_back(request);
        if self.requests.len() == 1 {
            self.ready = now + self.parameters.service;
        }
    }

    /// Notes that the answer to the oldest queued request has been sent, and begins to process the
    /// next request.
    fn finish_answer(&mut self, now: Tick) {
        self.requests.pop_front();
        self.is_answering = false;
        self.answered += 1;
        self.ready =
            if self.requests.is_empty() { Tick::NEVER } else { now + self.parameters.service };
    }
}

impl FrameGenerator for NfsServer {
    fn handle_time(&mut self, _: Tick) {
        self.ready = Tick::ZERO;
    }

    fn handle_frame(&mut self, now: Tick, frame: &[u8]) {
        self.host.handle_frame(now, frame);
        while let Some((datagram, from)) = self.host.receive() {
            if let Some((numbers, _)) = Numbers::read(datagram) {
                self.handle_request(now, Request { from, numbers });
            }
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        self.host.wants(frame)
    }

    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize> {
        if !self.host.has_frames() {
            if now < self.ready {
                return None;
            }
            let &Request { from, numbers } = self.requests.front()?;
            let data = (numbers.data as usize).min(LARGEST_DATAGRAM - HEADERS);
            self.host.send(now, from, &numbers.datagram(data));
            self.is_answering = true;
        }
        let length = self.host.poll_transmit(room);
        if self.is_answering && !self.host.has_frames() {
            self.finish_answer(now);
        }
        length
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
