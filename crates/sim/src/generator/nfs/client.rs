//! The NFS client, which reads a file. It has several requests outstanding at a time. A request
//! whose answer has not arrived completely is repeated after a timeout, which doubles with each
//! repetition.

use super::{CLIENT_PORT, HEADERS, Numbers, SERVER_PORT};
use crate::generator::datagram_host::{DatagramHost, DatagramPlace, LARGEST_DATAGRAM};
use crate::generator::{FrameCosts, FrameGenerator};
use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};
use std::net::{IpAddr, SocketAddr};

/// Upper limit of the number of data bytes in an answer.
const MOST_DATA: u64 = (LARGEST_DATAGRAM - HEADERS) as u64;
/// Upper limit of the configured `read_ahead`.
const MOST_AHEAD: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NfsClientParameters {
    costs: FrameCosts,
    bytes: u64,
    /// Number of data bytes that each request reads.
    transfer: usize,
    /// Number of requests that the client sends ahead: at most this number plus one are
    /// outstanding.
    read_ahead: usize,
    /// Time from the first transmission of a request to its first repetition.
    timeout: Span,
    /// Number of tries after which a request counts as "server not responding". Its timeout then
    /// starts again with the initial value.
    tries: u32,
}

impl NfsClientParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            costs: FrameCosts::read(section)?,
            bytes: section.count_within("bytes", 1..=u64::MAX)?,
            transfer: section.size_within("transfer", 1..=MOST_DATA)?,
            read_ahead: section.size_within("read_ahead", 0..=MOST_AHEAD)?,
            timeout: section.pause("timeout")?,
            tries: u32::try_from(section.count_within("tries", 1..=u64::from(u32::MAX))?)
                .unwrap_or(u32::MAX),
        })
    }
}

/// A request whose answer is not complete.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u32,
    data: usize,
    tries: u32,
    /// Time of the next repetition; `Tick::NEVER` while the request waits to be sent.
    again: Tick,
    /// Whether the request, or a repetition of it, waits to be sent.
    asks: bool,
}

#[derive(Debug)]
pub(crate) struct NfsClient {
    parameters: NfsClientParameters,
    name: String,
    host: DatagramHost,
    server: SocketAddr,
    calls: Vec<Call>,
    /// Number of bytes that have been requested.
    asked: u64,
    next: u32,
    read: u64,
    repeated: u64,
    not_responding: u64,
    ended: Option<Tick>,
}

impl NfsClient {
    pub(crate) fn new(
        parameters: NfsClientParameters,
        name: String,
        place: DatagramPlace,
        server: IpAddr,
    ) -> Self {
        Self {
            parameters,
            name,
            host: DatagramHost::new(place, CLIENT_PORT),
            server: SocketAddr::new(server, SERVER_PORT),
            calls: Vec::new(),
            asked: 0,
            next: 0,
            read: 0,
            repeated: 0,
            not_responding: 0,
            ended: None,
        }
    }

    /// Queues new requests until the permitted number is outstanding or the whole file has been
    /// requested.
    fn ask(&mut self) {
        while self.calls.len() <= self.parameters.read_ahead && self.asked < self.parameters.bytes {
            let left = usize::try_from(self.parameters.bytes - self.asked).unwrap_or(usize::MAX);
            let data = left.min(self.parameters.transfer);
            self.asked += data as u64;
            self.next += 1;
            let number = self.next;
            self.calls.push(Call { number, data, tries: 0, again: Tick::NEVER, asks: true });
        }
    }

    fn handle_answer(&mut self, now: Tick, number: u32, data: usize) {
        let is_answered = |call: &Call| call.number == number && call.data == data;
        let Some(place) = self.calls.iter().position(is_answered) else { return };
        self.calls.swap_remove(place);
        self.read += data as u64;
        self.ask();
        if self.read == self.parameters.bytes {
            self.ended.get_or_insert(now);
        }
    }
}

impl FrameGenerator for NfsClient {
    /// Repeats the requests whose timeout has expired. RFC 1094 lets the client choose the timeout.
    /// This client doubles it with each try, as 4.3BSD does.
    fn handle_time(&mut self, now: Tick) {
        self.ask();
        for call in self.calls.iter_mut().filter(|call| call.again <= now) {
            (call.again, call.asks) = (Tick::NEVER, true);
            self.repeated += 1;
            if call.tries.is_multiple_of(self.parameters.tries) {
                self.not_responding += 1;
            }
        }
    }

    fn handle_frame(&mut self, now: Tick, frame: &[u8]) {
        self.host.handle_frame(now, frame);
        while let Some((datagram, _)) = self.host.receive() {
            if let Some((numbers, data)) = Numbers::read(datagram) {
                self.handle_answer(now, numbers.call, data);
            }
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        self.host.wants(frame)
    }

    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize> {
        self.ask();
        if !self.host.has_frames() {
            let (timeout, tries) = (self.parameters.timeout, self.parameters.tries);
            let call = self.calls.iter_mut().find(|call| call.asks)?;
            call.asks = false;
            call.again = now + timeout * (1 << (call.tries % tries).min(16));
            call.tries += 1;
            let data = u32::try_from(call.data).unwrap_or(u32::MAX);
            let request = Numbers { call: call.number, data }.datagram(0);
            self.host.send(now, self.server, &request);
        }
        self.host.poll_transmit(room)
    }

    fn poll_timeout(&self) -> Tick {
        self.calls.iter().map(|call| call.again).min().unwrap_or(Tick::NEVER)
    }

    fn costs(&self) -> FrameCosts {
        self.parameters.costs
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    fn report(&self) -> ProgramReport {
        ProgramReport {
            bytes: self.read,
            began: Some(Tick::ZERO),
            ended: self.ended,
            complete: self.ended.is_some(),
            counted: vec![("repeated", self.repeated), ("not-responding", self.not_responding)],
            ..ProgramReport::new(&self.name)
        }
    }
}
