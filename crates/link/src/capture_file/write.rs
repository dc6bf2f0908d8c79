//! Writes captures. An error of the disk ends the capture, but the program continues.

use super::file::CaptureFile;
use super::layout::{
    APPLICATION, BYTE_ORDER, END_OF_OPTIONS, ENHANCED_PACKET, FLAGS, INBOUND,
    INTERFACE_DESCRIPTION, NAME, OUTBOUND, RESOLUTION, SECTION_HEADER, SPEED,
};
use super::packet::{Direction, LinkType};
use super::sink::Sink;
use linerate_stack::Capabilities;
use linerate_units::Duration;
use std::io;
use std::path::Path;

/// The size in bytes at which the buffer is written to the sink.
const BUFFER_SIZE: usize = 64 * 1024;

/// A packet to be written into a capture.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The number of the interface, which [`CaptureWriter::add_interface`] returned.
    pub interface: u32,
    /// The time of the packet since 1970-01-01 00:00 UTC.
    pub time: Duration,
    /// The direction of the packet.
    pub direction: Direction,
    /// The bytes of the packet. All of them are written.
    pub bytes: &'a [u8],
}

/// A writer of a capture. Each write to the sink consists of whole blocks, so the file is valid at
/// any time, even after the program was killed. Dropping the writer writes the buffered packets. A
/// capture without any packet is written only by [`finish`](Self::finish), and not when the writer
/// is dropped.
///
/// The methods for single packets return no errors, so that the producer of packets can continue.
/// The first error ends the capture. It is returned by [`error`](Self::error) and
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct CaptureWriter<S: Sink = CaptureFile> {
    sink: S,
    buffer: Vec<u8>,
    /// The number of packets in `buffer`.
    buffered_packets: u64,
    /// The number of bytes that were written to the sink. The blocks in them are complete.
    written: u64,
    interfaces: u32,
    packets: u64,
    missing: u64,
    error: Option<io::Error>,
}

impl CaptureWriter {
    /// Creates a capture in a file at `path`. An existing file is overwritten by the first write.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        CaptureFile::open(path.as_ref()).map(Self::new)
    }
}

impl<S: Sink> CaptureWriter<S> {
    /// Creates a capture in `sink`, which must be empty.
    pub fn new(sink: S) -> Self {
        let mut writer = Self {
            sink,
            buffer: Vec::with_capacity(BUFFER_SIZE + 2048),
            buffered_packets: 0,
            written: 0,
            interfaces: 0,
            packets: 0,
            missing: 0,
            error: None,
        };
        writer.block(SECTION_HEADER, |body| {
            body.put(&BYTE_ORDER.to_ne_bytes());
            body.put(&1_u16.to_ne_bytes());
            body.put(&0_u16.to_ne_bytes());
            // The length of the section is unknown (−1).
            body.put(&(-1_i64).to_ne_bytes());
            body.option(APPLICATION, concat!("linerate ", env!("CARGO_PKG_VERSION")).as_bytes());
            body.option(END_OF_OPTIONS, &[]);
        });
        writer
    }

    /// Adds an interface to the capture, and returns its number in the file.
    pub fn add_interface(&mut self, name: &str, capabilities: &Capabilities) -> u32 {
        self.block(INTERFACE_DESCRIPTION, |body| {
            body.put(&LinkType::of(capabilities.medium).number().to_ne_bytes());
            body.put(&0_u16.to_ne_bytes());
            // Snap length 0: no limit on the captured bytes of a packet.
            body.put(&0_u32.to_ne_bytes());
            body.option(NAME, name.as_bytes().get(..255).unwrap_or(name.as_bytes()));
            if let Some(rate) = capabilities.rate {
                body.option(SPEED, &rate.bits_per_second().to_ne_bytes());
            }
            // Unit of time stamps: 10^−9 s.
            body.option(RESOLUTION, &[9]);
            body.option(END_OF_OPTIONS, &[]);
        });
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Writes a packet. If an earlier error has ended the capture, only counts the packet as
    /// missing.
    pub fn write(&mut self, record: &Record<'_>) {
        if self.error.is_some() {
            self.missing += 1;
            return;
        }
        let time = record.time.as_nanos();
        let length = u32::try_from(record.bytes.len()).unwrap_or(u32::MAX);
        let flags = match record.direction {
            Direction::Received => INBOUND,
            Direction::Sent => OUTBOUND,
        };
        self.block(ENHANCED_PACKET, |body| {
            body.put(&record.interface.to_ne_bytes());
            // A time stamp is stored as two 32-bit numbers: the upper half comes first in either
            // byte order.
            body.put(&(((time >> 32) & 0xFFFF_FFFF) as u32).to_ne_bytes());
            body.put(&((time & 0xFFFF_FFFF) as u32).to_ne_bytes());
            body.put(&length.to_ne_bytes());
            body.put(&length.to_ne_bytes());
            body.put(record.bytes);
            body.pad();
            body.option(FLAGS, &flags.to_ne_bytes());
            body.option(END_OF_OPTIONS, &[]);
        });
        self.buffered_packets += 1;
        if self.buffer.len() >= BUFFER_SIZE {
            self.flush();
        }
    }

    /// Writes the buffered packets to the sink.
    pub fn flush(&mut self) {
        if self.error.is_none() && !self.buffer.is_empty() {
            match self.sink.write_all(&self.buffer).and_then(|()| self.sink.flush()) {
                Ok(()) => {
                    self.written += self.buffer.len() as u64;
                    self.packets += self.buffered_packets;
                }
                Err(error) => {
                    self.missing += self.buffered_packets;
                    // The failed write may have stored a part of the buffer. Truncating the file
                    // leaves only the packets of earlier, successful writes. If truncating fails as
                    // well, the file ends within a packet. Readers report that, so the result is
                    // ignored.
                    let _ = self.sink.cut(self.written);
                    self.error = Some(error);
                }
            }
        }
        self.buffer.clear();
        self.buffered_packets = 0;
    }

    /// Returns the error that ended the capture, if there was one.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Returns the number of packets in the capture, including those that are still in the buffer.
    pub const fn packets(&self) -> u64 {
        self.packets + self.buffered_packets
    }

    /// Returns the number of packets that were passed to the writer but are not in the capture,
    /// because an error has ended the capture.
    pub const fn missing(&self) -> u64 {
        self.missing
    }

    /// Writes the buffered packets, and closes the capture.
    ///
    /// # Errors
    /// The error that ended the capture, if there was one.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.error.take().map_or(Ok(()), Err)
    }

    /// Appends a block: type and length, the body that `fill` writes, and the length again.
    fn block(&mut self, kind: u32, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.buffer.len();
        let mut body = Body { bytes: &mut self.buffer, start };
        body.put(&kind.to_ne_bytes());
        body.put(&[0; 4]);
        fill(&mut body);
        // A length of 32 bits suffices, because no link carries packets of 4 GiB.
        let length = u32::try_from(body.bytes.len() - start + 4).unwrap_or(u32::MAX).to_ne_bytes();
        body.put(&length);
        body.bytes[start + 4..start + 8].copy_from_slice(&length);
    }
}

impl<S: Sink> Drop for CaptureWriter<S> {
    fn drop(&mut self) {
        if self.packets() > 0 {
            self.flush();
        }
    }
}

/// The bytes of a block under construction.
struct Body<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
}

impl Body<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.put(&code.to_ne_bytes());
        self.put(&length.to_ne_bytes());
        self.put(value);
        self.pad();
    }

    /// Appends zeros up to a multiple of four bytes.
    fn pad(&mut self) {
        let length = (self.bytes.len() - self.start).next_multiple_of(4);
        self.bytes.resize(self.start + length, 0);
    }
}
