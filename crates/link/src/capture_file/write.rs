//! Writing a capture, in such a way that trouble with the disk stops the capture and nothing else.

use super::layout::{
    APPLICATION, BYTE_ORDER, END_OF_OPTIONS, ENHANCED_PACKET, FLAGS, INBOUND,
    INTERFACE_DESCRIPTION, NAME, OUTBOUND, RESOLUTION, SECTION_HEADER, SPEED,
};
use super::{CaptureFile, Direction, LinkType};
use linerate_stack::Capabilities;
use linerate_units::Duration;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes that are gathered before they are written.
const GATHERED: usize = 64 * 1024;

/// Where a capture goes.
pub trait Sink: Write {
    /// Takes back what lies behind the first `length` bytes, after a write that failed half-way. Where
    /// that is impossible the capture ends within a packet.
    ///
    /// # Errors
    /// Any error of the system; nothing depends on it.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

impl Sink for Vec<u8> {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        (**self).cut(length)
    }
}

/// One packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What [`CaptureWriter::add_interface`] answered.
    pub interface: u32,
    /// When it went by, since 1970-01-01 00:00 UTC.
    pub time: Duration,
    /// Which way it went.
    pub direction: Direction,
    /// The whole of it.
    pub bytes: &'a [u8],
}

/// A capture being written. Only whole blocks are written, so that the file can be read at any time,
/// also after the program was killed. Dropping it writes what was gathered, if there was a packet: a capture that has
/// seen none is one only for whoever [finishes](Self::finish) it.
///
/// Nothing here returns an error: the first one ends the capture, and is kept for
/// [`error`](Self::error) and [`finish`](Self::finish); whoever produces the packets goes on.
#[derive(Debug)]
pub struct CaptureWriter<S: Sink = CaptureFile> {
    sink: S,
    gathered: Vec<u8>,
    /// Packets in `gathered`.
    gathered_packets: u64,
    /// Bytes in the sink, all of whole blocks.
    written: u64,
    interfaces: u32,
    packets: u64,
    missing: u64,
    error: Option<io::Error>,
}

impl CaptureWriter {
    /// A capture in a new file at `path`; one that exists is overwritten as soon as there is something to write.
    ///
    /// # Errors
    /// Why the file cannot be made.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        CaptureFile::open(path.as_ref()).map(Self::new)
    }
}

impl<S: Sink> CaptureWriter<S> {
    /// A capture that goes to `sink`, which must be empty.
    pub fn new(sink: S) -> Self {
        let mut writer = Self {
            sink,
            gathered: Vec::with_capacity(GATHERED + 2048),
            gathered_packets: 0,
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
            // The section's length is not known beforehand.
            body.put(&(-1_i64).to_ne_bytes());
            body.option(APPLICATION, concat!("linerate ", env!("CARGO_PKG_VERSION")).as_bytes());
            body.option(END_OF_OPTIONS, &[]);
        });
        writer
    }

    /// Announces an interface whose packets are to follow, and returns its number in this file.
    pub fn add_interface(&mut self, name: &str, capabilities: &Capabilities) -> u32 {
        self.block(INTERFACE_DESCRIPTION, |body| {
            body.put(&LinkType::of(capabilities.medium).number().to_ne_bytes());
            body.put(&0_u16.to_ne_bytes());
            // No limit: packets are written whole.
            body.put(&0_u32.to_ne_bytes());
            body.option(NAME, name.as_bytes().get(..255).unwrap_or(name.as_bytes()));
            if let Some(rate) = capabilities.rate {
                body.option(SPEED, &rate.bits_per_second().to_ne_bytes());
            }
            // Ten to the minus ninth of a second.
            body.option(RESOLUTION, &[9]);
            body.option(END_OF_OPTIONS, &[]);
        });
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Writes a packet, unless the capture has ended with an error; then it is counted as missing.
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
            // The upper half first, whatever the byte order.
            body.put(&(((time >> 32) & 0xFFFF_FFFF) as u32).to_ne_bytes());
            body.put(&((time & 0xFFFF_FFFF) as u32).to_ne_bytes());
            body.put(&length.to_ne_bytes());
            body.put(&length.to_ne_bytes());
            body.put(record.bytes);
            body.pad();
            body.option(FLAGS, &flags.to_ne_bytes());
            body.option(END_OF_OPTIONS, &[]);
        });
        self.gathered_packets += 1;
        if self.gathered.len() >= GATHERED {
            self.flush();
        }
    }

    /// Hands everything gathered to the sink.
    pub fn flush(&mut self) {
        if self.error.is_none() && !self.gathered.is_empty() {
            match self.sink.write_all(&self.gathered).and_then(|()| self.sink.flush()) {
                Ok(()) => {
                    self.written += self.gathered.len() as u64;
                    self.packets += self.gathered_packets;
                }
                Err(error) => {
                    self.missing += self.gathered_packets;
                    // What of it can be read, can be read; if the cut fails, too, the file ends within a packet.
                    let _ = self.sink.cut(self.written);
                    self.error = Some(error);
                }
            }
        }
        self.gathered.clear();
        self.gathered_packets = 0;
    }

    /// Why the capture ended early, if it did.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Packets that are in the capture, those gathered included.
    pub const fn packets(&self) -> u64 {
        self.packets + self.gathered_packets
    }

    /// Packets that are not in it, because it had ended early.
    pub const fn missing(&self) -> u64 {
        self.missing
    }

    /// Writes what was gathered and closes the capture.
    ///
    /// # Errors
    /// Why the capture ended early, if it did.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.error.take().map_or(Ok(()), Err)
    }

    /// A block whose body `fill` writes, between its kind and its length in front, and its length behind.
    fn block(&mut self, kind: u32, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.gathered.len();
        let mut body = Body { bytes: &mut self.gathered, start };
        body.put(&kind.to_ne_bytes());
        body.put(&[0; 4]);
        fill(&mut body);
        // A packet that were too long for 32 bits could not have come from any link.
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

/// The bytes of a block being written.
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

    /// Zeros up to the next multiple of four.
    fn pad(&mut self) {
        let length = (self.bytes.len() - self.start).next_multiple_of(4);
        self.bytes.resize(self.start + length, 0);
    }
}
