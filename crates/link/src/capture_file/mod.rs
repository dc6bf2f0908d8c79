//! Capture files, as tcpdump and Wireshark use them.
//!
//! The writer produces pcapng (draft-ietf-opsawg-pcapng) with time stamps in nanoseconds and the
//! direction of each packet. The reader accepts pcapng and pcap in either byte order. Both process
//! one packet at a time, so the size of a file does not matter.

mod error;
mod file;
mod input;
mod layout;
mod packet;
mod pcap;
mod pcapng;
mod read;
mod sink;
mod write;

pub use error::CaptureError;
pub use file::CaptureFile;
pub use packet::{Direction, LinkType, Packet};
pub use read::CaptureReader;
pub use sink::Sink;
pub use write::{CaptureWriter, Record};

#[cfg(test)]
mod tests;
