//! The floor of the link in memory: the same bytes through the same rings between the same two
//! threads, with what a TCP cannot do without, and no TCP.
//!
//! Each byte is copied into a send buffer, from there into a frame and summed on the way, summed in
//! the frame on the other side, copied into a receive buffer, and from there to the reader: four
//! copies and two sums, as in a run. There are no headers to make or to read, no acknowledgements,
//! no timers and no connections; what holds the writer back is the ring.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::Seat;
use crate::engines::own_tcp::Watch;
use crate::engines::threads::joined;
use linerate_ends::Interrupt;
use linerate_ends::workload::Pattern;
use linerate_evidence::Floor;
use linerate_link::{MemoryLink, MonotonicClock};
use linerate_stack::{Link, LinkError, TxFrame};
use linerate_units::{Clock, Instant};
use linerate_wire::{Sum, checksum::copy_and_sum};
use std::thread;

/// Ethernet, IPv4 and TCP headers of a frame; they cross the link, but mean nothing here.
const HEADERS: usize = 14 + 20 + 20;
/// Frames of a turn, as in a host.
const BUDGET: usize = 64;

/// Carries the request's bytes once.
pub(crate) fn measure(
    near: MemoryLink,
    far: MemoryLink,
    payload: u32,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<Floor, BenchError> {
    let payload = payload as usize;
    let (began, ended) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            Seat::Source.take();
            Writer::new(near, payload, request)?.write_all(interrupt)
        });
        let reader = scope.spawn(|| {
            Seat::Sink.take();
            Reader::new(far, payload, request)?.read_all(interrupt)
        });
        (joined(writer), joined(reader))
    });
    // A writer that stopped early is the reason why the reader found the link down, and the other
    // way round; nobody who was interrupted is to blame.
    let (began, ended) = match (began, ended) {
        (Err(BenchError::Interrupted), _) | (_, Err(BenchError::Interrupted)) => {
            return Err(BenchError::Interrupted);
        }
        (began, ended) => (began?, ended?),
    };
    Ok(Floor { bytes: request.bytes, time: ended.since(began), how: how(request) })
}

fn how(request: &RunRequest) -> String {
    let pattern = if request.verify { ", made and compared byte for byte as in a run" } else { "" };
    format!(
        "the same bytes through the same link and two threads, each copied four times and summed twice{pattern}, \
         without protocol"
    )
}

/// A link, and how its owner waits for it.
struct Patient {
    link: MemoryLink,
    watch: Watch,
}

impl Patient {
    fn new(link: MemoryLink) -> Result<Self, BenchError> {
        Ok(Self { link, watch: Watch::new()? })
    }

    fn wait(&mut self, interrupt: &Interrupt) -> Result<(), BenchError> {
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        self.watch.wait(&mut self.link, Instant::NEVER)
    }
}

/// The application that writes, its send buffer, and the frames made of it.
struct Writer<'a> {
    patient: Patient,
    request: &'a RunRequest,
    pattern: Pattern,
    block: Vec<u8>,
    buffer: Vec<u8>,
    payload: usize,
}

impl<'a> Writer<'a> {
    fn new(link: MemoryLink, payload: usize, request: &'a RunRequest) -> Result<Self, BenchError> {
        let pattern = Pattern::new(request.seed);
        let mut block = vec![0; request.write_size];
        pattern.fill(0, &mut block);
        let room = buffer_size(request.send_buffer.bytes, payload);
        Ok(Self {
            patient: Patient::new(link)?,
            request,
            pattern,
            block,
            buffer: vec![0; room],
            payload,
        })
    }

    /// Says when it began.
    fn write_all(mut self, interrupt: &Interrupt) -> Result<Instant, BenchError> {
        let began = MonotonicClock.now();
        let mut written = 0;
        while written < self.request.bytes {
            if interrupt.is_raised() {
                return Err(BenchError::Interrupted);
            }
            let left = usize::try_from(self.request.bytes - written).unwrap_or(usize::MAX);
            let filled = self.buffer.len().min(left);
            self.fill(written, filled);
            self.send(filled, interrupt)?;
            written += filled as u64;
        }
        // What was sent stays readable for the other end after this one is gone.
        Ok(began)
    }

    /// The application's writes: the first copy.
    fn fill(&mut self, position: u64, count: usize) {
        let mut filled = 0;
        while filled < count {
            let at = position + filled as u64;
            let offset = usize::try_from(at % self.block.len() as u64).unwrap_or(0);
            if offset == 0 && self.request.verify {
                self.pattern.fill(at, &mut self.block);
            }
            let length = (self.block.len() - offset).min(count - filled);
            self.buffer[filled..filled + length]
                .copy_from_slice(&self.block[offset..offset + length]);
            filled += length;
        }
    }

    /// The second copy, and the first sum.
    fn send(&mut self, count: usize, interrupt: &Interrupt) -> Result<(), BenchError> {
        let mut sent = 0;
        while sent < count {
            let (buffer, payload) = (&self.buffer, self.payload);
            let frames = self.patient.link.transmit(BUDGET, |frame| {
                let length = payload.min(count - sent);
                if length == 0 {
                    return None;
                }
                let sum = copy_and_sum(
                    &buffer[sent..sent + length],
                    &mut frame[HEADERS..HEADERS + length],
                );
                frame[..2].copy_from_slice(&sum.finish().to_be_bytes());
                sent += length;
                Some(TxFrame::whole(HEADERS + length))
            });
            if frames.map_err(broken)? == 0 {
                self.patient.wait(interrupt)?;
            }
        }
        Ok(())
    }
}

/// The frames that come in, their receive buffer, and the application that reads.
struct Reader<'a> {
    patient: Patient,
    request: &'a RunRequest,
    pattern: Pattern,
    buffer: Vec<u8>,
    block: Vec<u8>,
    read: u64,
}

impl<'a> Reader<'a> {
    fn new(link: MemoryLink, payload: usize, request: &'a RunRequest) -> Result<Self, BenchError> {
        let room = buffer_size(request.receive_buffer.bytes, payload).max(BUDGET * payload);
        let pattern = Pattern::new(request.seed);
        let block = vec![0; request.read_size];
        Ok(Self {
            patient: Patient::new(link)?,
            request,
            pattern,
            buffer: vec![0; room],
            block,
            read: 0,
        })
    }

    /// Says when it had read the last byte.
    fn read_all(mut self, interrupt: &Interrupt) -> Result<Instant, BenchError> {
        while self.read < self.request.bytes {
            let arrived = self.receive()?;
            if arrived == 0 {
                self.patient.wait(interrupt)?;
            }
            self.take(arrived)?;
        }
        Ok(MonotonicClock.now())
    }

    /// The second sum, and the third copy.
    fn receive(&mut self) -> Result<usize, BenchError> {
        let (buffer, mut arrived, mut damaged) = (&mut self.buffer, 0, false);
        let received = self.patient.link.receive(BUDGET, |frame| {
            let data = &frame.bytes[HEADERS..];
            damaged |= Sum::of(data).finish().to_be_bytes() != frame.bytes[..2];
            buffer[arrived..arrived + data.len()].copy_from_slice(data);
            arrived += data.len();
        });
        received.map_err(broken)?;
        if damaged { Err(broken_by("a sum that is wrong")) } else { Ok(arrived) }
    }

    /// The application's reads: the fourth copy.
    fn take(&mut self, arrived: usize) -> Result<(), BenchError> {
        for part in self.buffer[..arrived].chunks(self.block.len()) {
            let block = &mut self.block[..part.len()];
            block.copy_from_slice(part);
            if self.request.verify && self.pattern.verify(self.read, block).is_err() {
                return Err(broken_by("bytes that are wrong"));
            }
            self.read += part.len() as u64;
        }
        Ok(())
    }
}

/// A send buffer holds some whole segments, and no more than a cache does.
fn buffer_size(requested: u64, payload: usize) -> usize {
    let segments = usize::try_from(requested).unwrap_or(usize::MAX) / payload;
    segments.clamp(1, BUDGET) * payload
}

fn broken(error: LinkError) -> BenchError {
    broken_by(&error.to_string())
}

fn broken_by(what: &str) -> BenchError {
    BenchError::ConnectionLost { bytes: 0, what: format!("the floor met {what}") }
}
