//! Reading a capture, packet by packet, whatever the file says about itself.

use super::layout::{PCAP_MICROSECONDS, PCAP_NANOSECONDS, SECTION_HEADER};
use super::pcap::Pcap;
use super::pcapng::Pcapng;
use super::{Direction, LinkType};
use linerate_units::Duration;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use thiserror::Error;

/// Bytes of the largest packet that is believed. Captures of loopback interfaces hold packets of
/// 65,550 bytes, and capture programs stop at 262,144.
pub(super) const LARGEST_PACKET: u32 = 1 << 20;

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The interface that saw it, counted from 0 in its section of the file.
    pub interface: u32,
    /// What it begins with.
    pub link_type: LinkType,
    /// When it went by, since 1970-01-01 00:00 UTC, if the file says.
    pub time: Option<Duration>,
    /// Which way it went, if the file says.
    pub direction: Option<Direction>,
    /// Bytes it had on the wire, of which fewer may have been captured.
    pub original_length: u32,
    /// The bytes that were captured.
    pub bytes: &'a [u8],
}

/// A capture being read.
#[derive(Debug)]
pub struct CaptureReader<R: Read = File> {
    input: Input<R>,
    format: Format,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Format {
    Pcapng(Pcapng),
    Pcap(Pcap),
}

impl CaptureReader<File> {
    /// The capture in the file at `path`.
    ///
    /// # Errors
    /// [`CaptureError`]: the file cannot be read, or is no capture.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::new(File::open(path).map_err(CaptureError::Open)?)
    }
}

impl<R: Read> CaptureReader<R> {
    /// The capture that `source` holds. It is read in pieces of some kilobytes.
    ///
    /// # Errors
    /// [`CaptureError`]: the source cannot be read, or is no capture.
    pub fn new(source: R) -> Result<Self, CaptureError> {
        let mut input = Input { source: BufReader::with_capacity(64 * 1024, source), offset: 0 };
        let mut start = [0; 4];
        if !input.read(&mut start)? {
            return Err(CaptureError::Empty);
        }
        let little = u32::from_le_bytes(start);
        let format = match (little, little.swap_bytes()) {
            (SECTION_HEADER, _) => Format::Pcapng(Pcapng::open(&mut input)?),
            (PCAP_MICROSECONDS | PCAP_NANOSECONDS, _) => {
                Format::Pcap(Pcap::open(&mut input, ByteOrder::Little, little == PCAP_NANOSECONDS)?)
            }
            (_, big @ (PCAP_MICROSECONDS | PCAP_NANOSECONDS)) => {
                Format::Pcap(Pcap::open(&mut input, ByteOrder::Big, big == PCAP_NANOSECONDS)?)
            }
            _ => return Err(CaptureError::NoCapture { start }),
        };
        Ok(Self { input, format, buffer: Vec::new() })
    }

    /// The next packet, or `None` at the end of the file.
    ///
    /// # Errors
    /// [`CaptureError`], with the place at which the file is damaged or cut short. There is nothing
    /// more to be had behind it.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        match &mut self.format {
            Format::Pcapng(format) => format.next_packet(&mut self.input, &mut self.buffer),
            Format::Pcap(format) => format.next_packet(&mut self.input, &mut self.buffer),
        }
    }
}

/// Why a capture cannot be read further.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The system does not open the file.
    #[error("the file cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// The system does not read on.
    #[error("the file cannot be read at byte {offset}: {error}")]
    Read {
        /// Where in the file.
        offset: u64,
        /// What the system says.
        error: io::Error,
    },
    /// There is nothing in the file.
    #[error("the file is empty, which no capture is")]
    Empty,
    /// The file is something else.
    #[error("the file is neither pcapng nor pcap: it begins with the bytes {start:02x?}")]
    NoCapture {
        /// What it begins with.
        start: [u8; 4],
    },
    /// The file ends in the middle of something: the program that wrote it was stopped, or the disk full.
    #[error("the file is cut short: it ends at byte {offset}, in the middle of a packet or block")]
    CutShort {
        /// Where it ends.
        offset: u64,
    },
    /// The file contradicts the format.
    #[error("the file is damaged before byte {offset}: {what}")]
    Damaged {
        /// Where the damage was noticed.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// The order in which a file has the bytes of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The number in the two bytes at `at`, 0 where there are none: callers have looked.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let two = bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).unwrap_or_default();
        match self {
            Self::Little => u16::from_le_bytes(two),
            Self::Big => u16::from_be_bytes(two),
        }
    }

    /// The number in the four bytes at `at`, 0 where there are none.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).unwrap_or_default();
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }
}

/// A source whose place is known, for errors.
#[derive(Debug)]
pub(super) struct Input<R: Read> {
    source: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    /// Fills `bytes`. False if the source ends before the first of them.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<bool, CaptureError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.source.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(CaptureError::CutShort { offset: self.offset }),
                Ok(count) => {
                    filled += count;
                    self.offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(CaptureError::Read { offset: self.offset, error }),
            }
        }
        Ok(true)
    }

    /// Fills `bytes`, which must be there.
    pub(super) fn read_more(&mut self, bytes: &mut [u8]) -> Result<(), CaptureError> {
        if self.read(bytes)? { Ok(()) } else { Err(CaptureError::CutShort { offset: self.offset }) }
    }

    /// Goes past `count` bytes, which must be there.
    pub(super) fn skip(&mut self, mut count: u64) -> Result<(), CaptureError> {
        let mut thrown_away = [0; 4096];
        while count > 0 {
            let piece = usize::try_from(count).unwrap_or(usize::MAX).min(thrown_away.len());
            self.read_more(&mut thrown_away[..piece])?;
            count -= piece as u64;
        }
        Ok(())
    }

    /// That the file is damaged, here.
    pub(super) const fn damaged(&self, what: &'static str) -> CaptureError {
        CaptureError::Damaged { offset: self.offset, what }
    }
}
