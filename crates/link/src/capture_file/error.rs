//! The errors of reading a capture.

use std::io;
use thiserror::Error;

/// The reason why a capture cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("the file cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// Reading the file failed at an offset; all bytes before it were read.
    #[error("the file cannot be read at byte {offset}: {error}")]
    Read {
        /// The offset of the failed read, in bytes.
        offset: u64,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The file is empty.
    #[error("the file is empty, and hence not a capture")]
    Empty,
    /// The file is not a capture.
    #[error("the file is neither pcapng nor pcap: it begins with the bytes {start:02x?}")]
    NoCapture {
        /// The first bytes of the file.
        start: [u8; 4],
    },
    /// The file ends within a packet or block, because its writer was stopped or the disk was full.
    #[error("the file is cut short: it ends at byte {offset}, in the middle of a packet or block")]
    CutShort {
        /// The length of the file in bytes.
        offset: u64,
    },
    /// The contents of the file violate the format.
    #[error("the file is damaged before byte {offset}: {what}")]
    Damaged {
        /// The offset at which the violation was detected, in bytes.
        offset: u64,
        /// The rule of the format that the file violates.
        what: &'static str,
    },
}
