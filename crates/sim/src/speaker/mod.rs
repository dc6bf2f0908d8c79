//! Programs that speak in frames of their own, beside the host: protocols that linerate's host does not have, and
//! stations that only take up a wire. They are told the time and what comes in, and asked what they send.
//!
//! The machine charges its processor for them as for anything else, but for what its table says of TCP: that is
//! theirs to say ([`Labour`]).

mod blast;
mod decnet;
mod header;
mod nfs;
mod saturate;

pub(crate) use blast::{BlastParameters, BlastReceiver, BlastSender};
pub(crate) use decnet::{DecnetParameters, DecnetReceiver, DecnetSender};
pub(crate) use header::Header;
pub(crate) use nfs::{
    LONGEST as NFS_LONGEST, NfsClient, NfsClientParameters, NfsServer, NfsServerParameters,
};
pub(crate) use saturate::{Saturate, SaturateParameters};

use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};
use std::fmt::Debug;

/// A program that speaks in frames.
pub(crate) trait Speaker: Debug + Send {
    /// The time has come that it waited for.
    fn handle_time(&mut self, now: Tick);

    /// A frame has come in that it wants.
    fn handle_frame(&mut self, now: Tick, frame: &[u8]);

    /// Is this frame one of its own kind?
    fn wants(&self, frame: &[u8]) -> bool;

    /// What it sends next: writes a frame, and says how long it is. It is not asked while the card has no room.
    fn poll_transmit(&mut self, now: Tick, room: &mut [u8]) -> Option<usize>;

    /// When it wants to be told of the time; NEVER if it does not.
    fn poll_timeout(&self) -> Tick;

    /// What its frames cost.
    fn labour(&self) -> Labour;

    /// Has it done all that it was to do?
    fn is_over(&self) -> bool;

    /// How it went.
    fn report(&self) -> ProgramReport;
}

/// What the processor does for a program's frames, beside what the driver does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labour {
    /// A frame is taken in.
    pub(crate) input: Span,
    /// A frame is made.
    pub(crate) output: Span,
    /// A byte of either is copied or summed.
    pub(crate) byte: Span,
}

impl Labour {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            input: section.span("input")?,
            output: section.span("output")?,
            byte: section.span_per_byte("per_byte")?,
        })
    }
}
