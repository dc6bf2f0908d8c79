//! A saturating station, which always has a frame to send. It serves to measure the throughput of
//! an Ethernet under overload (Boggs, Mogul and Kent, "Measured capacity of an Ethernet", 1988).
//! Its frames have no receiver.

use super::{FrameCosts, FrameGenerator, Header};
use crate::medium::{CHECK_SEQUENCE, SHORTEST};
use crate::parameter::{ParameterError, Section};
use crate::program::ProgramReport;
use linerate_units::{Span, Tick};

/// Upper limit of the configured frame lengths, in bytes.
const LONGEST: u64 = 65_535;

/// Parameters of a saturating station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaturateParameters {
    /// Usual length of a frame in bytes, check sequence included.
    frame: usize,
    /// Interval of exceptional frames: every frame whose number is a multiple of `every` has the
    /// length `other`. Zero means that all frames have the usual length.
    every: u64,
    /// Length in bytes of the exceptional frames, check sequence included.
    other: usize,
    time: Span,
}

impl SaturateParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        Ok(Self {
            frame: section.size_within("frame", SHORTEST as u64..=LONGEST)?,
            every: section.count("every")?,
            other: section.size_within("other", SHORTEST as u64..=LONGEST)?,
            time: section.span("time")?,
        })
    }

    /// Returns the length of the station's longest frame in bytes, without check sequence.
    pub(crate) const fn longest(&self) -> usize {
        let longest = if self.frame > self.other { self.frame } else { self.other };
        longest - CHECK_SEQUENCE
    }
}

/// A raw-frame generator that always has a frame to send.
#[derive(Debug)]
pub(crate) struct Saturate {
    parameters: SaturateParameters,
    name: String,
    number: usize,
    sent: u64,
    bytes: u64,
    ended: Option<Tick>,
}

impl Saturate {
    pub(crate) const fn new(parameters: SaturateParameters, name: String, number: usize) -> Self {
        Self { parameters, name, number, sent: 0, bytes: 0, ended: None }
    }

    fn end(&self) -> Tick {
        Tick::ZERO + self.parameters.time
    }
}

impl FrameGenerator for Saturate {
    fn handle_time(&mut self, now: Tick) {
        if now >= self.end() {
            self.ended.get_or_insert(now);
        }
    }

    fn handle_frame(&mut self, _: Tick, _: &[u8]) {}

    fn wants(&self, _: &[u8]) -> bool {
        false
    }

    fn poll_transmit(&mut self, _: Tick, room: &mut [u8]) -> Option<usize> {
        if self.ended.is_some() {
            return None;
        }
        self.sent += 1;
        let is_other = self.sent.checked_rem(self.parameters.every) == Some(0);
        let length = if is_other { self.parameters.other } else { self.parameters.frame };
        let header = Header::without_receiver(self.number);
        let length = header.write(room, length - CHECK_SEQUENCE);
        self.bytes += (length + CHECK_SEQUENCE) as u64;
        Some(length)
    }

    fn poll_timeout(&self) -> Tick {
        if self.ended.is_some() { Tick::NEVER } else { self.end() }
    }

    fn costs(&self) -> FrameCosts {
        FrameCosts::default()
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    fn report(&self) -> ProgramReport {
        ProgramReport {
            bytes: self.bytes,
            began: Some(Tick::ZERO),
            ended: self.ended,
            complete: self.ended.is_some(),
            counted: vec![("frames", self.sent)],
            ..ProgramReport::new(&self.name)
        }
    }
}
