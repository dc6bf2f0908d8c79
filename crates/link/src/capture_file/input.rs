//! The source from which a capture is read.

use super::error::CaptureError;
use std::io::{self, BufReader, Read};

/// The largest packet that the reader accepts, in bytes. The limit bounds the memory that is
/// allocated for a malformed file. Capture programs store at most 262,144 bytes per packet, which
/// is less.
pub(super) const LARGEST_PACKET: u32 = 1 << 20;

/// The byte order of the numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the number in the two bytes at `at`, or 0 if `bytes` is too short.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let two = bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).unwrap_or_default();
        match self {
            Self::Little => u16::from_le_bytes(two),
            Self::Big => u16::from_be_bytes(two),
        }
    }

    /// Returns the number in the four bytes at `at`, or 0 if `bytes` is too short.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).unwrap_or_default();
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }

    /// Returns the number in `value`, or 0 if `value` is not eight bytes long.
    pub(super) fn i64(self, value: &[u8]) -> i64 {
        let eight = value.try_into().unwrap_or_default();
        match self {
            Self::Little => i64::from_le_bytes(eight),
            Self::Big => i64::from_be_bytes(eight),
        }
    }
}

/// A source of bytes, and the number of bytes that were read from it. Error messages contain this
/// number as the offset.
#[derive(Debug)]
pub(super) struct Input<R: Read> {
    source: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(64 * 1024, source), offset: 0 }
    }

    /// Fills `bytes` from the source. Returns false if the source ended before the first byte,
    /// which is the regular end of a capture. Returns an error if the source ended after some of
    /// the bytes.
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

    /// Fills `bytes` from the source. Returns an error if the source ends before all of them. A
    /// source that ends before the first byte is an error as well, unlike with
    /// [`read`](Self::read).
    pub(super) fn read_more(&mut self, bytes: &mut [u8]) -> Result<(), CaptureError> {
        if self.read(bytes)? { Ok(()) } else { Err(CaptureError::CutShort { offset: self.offset }) }
    }

    /// Skips `count` bytes. Returns an error if the source ends before that.
    pub(super) fn skip(&mut self, mut count: u64) -> Result<(), CaptureError> {
        let mut discarded = [0; 4096];
        while count > 0 {
            let piece = usize::try_from(count).unwrap_or(usize::MAX).min(discarded.len());
            self.read_more(&mut discarded[..piece])?;
            count -= piece as u64;
        }
        Ok(())
    }

    /// Returns an error which says that the file is damaged before the current offset. `what` is
    /// the rule that the file violates.
    pub(super) const fn damaged(&self, what: &'static str) -> CaptureError {
        CaptureError::Damaged { offset: self.offset, what }
    }
}
