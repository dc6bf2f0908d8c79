//! Raw-frame generators: programs that send and receive Ethernet frames without their machine's
//! TCP/IP stack. They model protocols that linerate's host does not implement, or protocols whose
//! frames cost other processor times than TCP segments. They also model stations that only occupy
//! the wire.
//!
//! Frames of a generator cost processor time of the machine. Each generator specifies these times
//! ([`FrameCosts`]), because the machine's cost table is about TCP segments.

mod blast;
mod datagram_host;
mod decnet;
mod header;
mod nfs;
mod saturate;

pub(crate) use blast::{BlastParameters, BlastReceiver, BlastSender};
pub(crate) use datagram_host::{DatagramPlace, LONGEST as LONGEST_DATAGRAM_FRAME};
pub(crate) use decnet::{DecnetParameters, DecnetReceiver, DecnetSender};
pub(crate) use header::Header;
pub(crate) use nfs::{NfsClient, NfsClientParameters, NfsServer, NfsServerParameters};
pub(crate) use saturate::{Saturate, SaturateParameters};

use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};
use std::fmt::Debug;

/// A program that sends and receives raw frames.
pub(crate) trait FrameGenerator: Debug + Send {
    /// Handles the expiry of the timeout that [`FrameGenerator::poll_timeout`] returned.
    fn handle_time(&mut self, now: Tick);

    /// Handles a received frame for which [`FrameGenerator::wants`] has returned true.
    fn handle_frame(&mut self, now: Tick, frame: &[u8]);

    /// Returns whether a received frame is for this program, and not for the machine's TCP/IP
    /// stack.
    fn wants(&self, frame: &[u8]) -> bool;

    /// Writes the next frame into `room` and returns its length, or `None` if there is nothing to
    /// send. Called only while the NIC has room.
    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize>;

    /// Returns the time of the next timeout; `Tick::NEVER` if there is none.
    fn poll_timeout(&self) -> Tick;

    /// Returns the processor times of receiving and of building one of the generator's frames.
    fn costs(&self) -> FrameCosts;

    /// Returns whether the program has finished. A simulation ends when all programs have finished.
    fn is_finished(&self) -> bool;

    /// Returns the results of the program.
    fn report(&self) -> ProgramReport;
}

/// Processor times of a generator's frames, without the work of the NIC driver. The machine adds
/// the driver's times from its own cost table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameCosts {
    /// Time to process a received frame.
    pub(crate) input: Span,
    /// Time to build a frame.
    pub(crate) output: Span,
    /// Time to copy or checksum one byte of a frame.
    pub(crate) byte: Span,
}

impl FrameCosts {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            input: section.span("input")?,
            output: section.span("output")?,
            byte: section.span_per_byte("per_byte")?,
        })
    }
}
