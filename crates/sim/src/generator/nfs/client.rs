//! The client, which reads a file. It sends several requests ahead, and repeats each after a time
//! that doubles until the answer is complete.

use super::{ANSWER_HEADERS, FRAGMENT, KIND, REQUEST, is_for};
use crate::generator::{FrameCosts, FrameGenerator, Header};
use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};

/// Upper limit of the fragments of an answer: the bits of the bitmap.
const MOST_FRAGMENTS: u32 = 64;
/// Upper limit of the data bytes of an answer.
const MOST_DATA: u64 = MOST_FRAGMENTS as u64 * FRAGMENT as u64 - ANSWER_HEADERS as u64;
/// Upper limit of the outstanding requests beyond the first.
const MOST_AHEAD: u64 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NfsClientParameters {
    costs: FrameCosts,
    bytes: u64,
    /// Number of data bytes that each request asks for.
    transfer: usize,
    /// Number of outstanding requests in addition to the first.
    read_ahead: usize,
    /// Time after which a request is repeated for the first time.
    timeout: Span,
    /// Number of tries of a request after which "server not responding" is counted, and its timeout
    /// is reset.
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
    /// Bitmap of the received fragments, and the number of the try that they answer. Fragments of
    /// answers to different tries do not combine, because their IP identifications differ.
    here: u64,
    answer: u32,
    tries: u32,
    /// Time of the next repetition.
    again: Tick,
    /// Whether the request waits to be sent.
    asks: bool,
}

#[derive(Debug)]
pub(crate) struct NfsClient {
    parameters: NfsClientParameters,
    name: String,
    number: usize,
    server: usize,
    calls: Vec<Call>,
    /// Bytes requested.
    asked: u64,
    next: u32,
    read: u64,
    repeated: u64,
    not_responding: u64,
    ended: Option<Tick>,
}

impl NfsClient {
    pub(crate) const fn new(
        parameters: NfsClientParameters,
        name: String,
        number: usize,
        server: usize,
    ) -> Self {
        Self {
            parameters,
            name,
            number,
            server,
            calls: Vec::new(),
            asked: 0,
            next: 0,
            read: 0,
            repeated: 0,
            not_responding: 0,
            ended: None,
        }
    }

    /// Queues new requests, as many as the read-ahead permits.
    fn ask(&mut self) {
        while self.calls.len() <= self.parameters.read_ahead && self.asked < self.parameters.bytes {
            let left = usize::try_from(self.parameters.bytes - self.asked).unwrap_or(usize::MAX);
            let data = left.min(self.parameters.transfer);
            self.asked += data as u64;
            self.next += 1;
            let number = self.next;
            self.calls.push(Call {
                number,
                data,
                here: 0,
                answer: 0,
                tries: 0,
                again: Tick::NEVER,
                asks: true,
            });
        }
    }
}

impl FrameGenerator for NfsClient {
    /// Repeats the requests whose timeout has expired. RFC 1094 leaves the timeout to the client;
    /// it doubles as in 4.3BSD.
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
        let Some(Header { numbers: [number, index, count, answer], .. }) = Header::read(frame)
        else {
            return;
        };
        let Some(place) = self.calls.iter().position(|call| call.number == number) else { return };
        let call = &mut self.calls[place];
        if index >= count || count > MOST_FRAGMENTS {
            return;
        }
        if std::mem::replace(&mut call.answer, answer) != answer {
            call.here = 0;
        }
        call.here |= 1 << index;
        if call.here.count_ones() == count {
            self.read += call.data as u64;
            self.calls.swap_remove(place);
            self.ask();
        }
        if self.read == self.parameters.bytes {
            self.ended.get_or_insert(now);
        }
    }

    fn wants(&self, frame: &[u8]) -> bool {
        is_for(frame, self.number)
    }

    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize> {
        self.ask();
        let (timeout, tries) = (self.parameters.timeout, self.parameters.tries);
        let call = self.calls.iter_mut().find(|call| call.asks)?;
        call.asks = false;
        call.again = now + timeout * (1 << (call.tries % tries).min(16));
        call.tries += 1;
        let data = u32::try_from(call.data).unwrap_or(u32::MAX);
        let numbers = [call.number, call.tries, 0, data];
        let header = Header { to: self.server, from: self.number, kind: KIND, numbers };
        Some(header.write(room, REQUEST))
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
