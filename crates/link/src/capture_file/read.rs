//! Reads a capture packet by packet. The source can be any reader, and its contents are not
//! trusted.

use super::error::CaptureError;
use super::input::{ByteOrder, Input};
use super::layout::{PCAP_MICROSECONDS, PCAP_NANOSECONDS, SECTION_HEADER};
use super::packet::Packet;
use super::pcap::Pcap;
use super::pcapng::Pcapng;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A reader of a capture.
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
    /// Opens the capture at `path`.
    ///
    /// # Errors
    /// [`CaptureError`] if the file cannot be read, or is not a capture.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::new(File::open(path).map_err(CaptureError::Open)?)
    }
}

impl<R: Read> CaptureReader<R> {
    /// Opens the capture in `source`, which is read in blocks of 64 KiB.
    ///
    /// # Errors
    /// [`CaptureError`] if the source cannot be read, or is not a capture.
    pub fn new(source: R) -> Result<Self, CaptureError> {
        let mut input = Input::new(source);
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

    /// Returns the next packet, or `None` at the end of the file.
    ///
    /// # Errors
    /// [`CaptureError`] with the offset at which the file is damaged or cut short. The reader
    /// cannot continue after it.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        match &mut self.format {
            Format::Pcapng(format) => format.next_packet(&mut self.input, &mut self.buffer),
            Format::Pcap(format) => format.next_packet(&mut self.input, &mut self.buffer),
        }
    }
}
