//! A serial line between two hosts: a byte after the other, packets framed by SLIP (RFC 1055), and their headers
//! compressed or not (RFC 1144). What the other end makes of the line is compared with what was sent.

use super::{MediumAction, MediumEvent, MediumStatistics, Port};
use crate::frame::{FrameId, Frames};
use crate::parameter::{ParameterError, Section};
use linerate_units::{Rate, Span, Tick};
use linerate_wire::{VjCompressor, VjDecompressor, slip_bytes};

/// Bits of a byte with all that goes around it.
const MOST_BITS: u64 = 64;

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct SerialParameters {
    pub(crate) rate: Rate,
    /// A byte with its start and stop bits.
    byte: Span,
    delay: Span,
    compression: bool,
}

impl SerialParameters {
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ParameterError> {
        let rate = section.wire_rate("rate")?;
        Ok(Self {
            rate,
            byte: Span::of_bits(section.count_within("bits", 1..=MOST_BITS)?, rate),
            delay: section.span("delay")?,
            compression: section.switch("compression")?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Serial {
    parameters: SerialParameters,
    ways: [Way; 2],
    counted: MediumStatistics,
}

/// One direction.
#[derive(Debug, Default)]
struct Way {
    compressor: VjCompressor,
    decompressor: VjDecompressor,
    outgoing: Option<FrameId>,
    packet: Vec<u8>,
    restored: Vec<u8>,
}

impl Way {
    /// What goes over the line for a packet, whose header may be compressed.
    fn compress(&mut self, packet: &[u8], compression: bool) -> &[u8] {
        self.packet.clear();
        self.packet.extend_from_slice(packet);
        if !compression {
            return &self.packet;
        }
        let line = self.compressor.compress(&mut self.packet);
        self.restored.resize(packet.len(), 0);
        let restored = self.decompressor.expand(line, &mut self.restored);
        assert_eq!(restored, Ok(packet.len()), "the other end knows what the header was");
        assert_eq!(self.restored, packet, "and it is that header");
        line
    }
}

impl Serial {
    /// A line.
    pub(crate) fn new(parameters: SerialParameters) -> Self {
        Self { parameters, ways: Default::default(), counted: MediumStatistics::default() }
    }

    pub(crate) const fn statistics(&self) -> &MediumStatistics {
        &self.counted
    }

    /// See [`super::Medium::handle_request`].
    pub(crate) fn handle_request(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        frames: &Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let way = &mut self.ways[port];
        assert!(way.outgoing.is_none(), "a station sends one frame at a time");
        way.outgoing = Some(frame);
        let line = way.compress(frames[frame].bytes(), self.parameters.compression);
        self.counted.bytes += line.len() as u64;
        let time = self.parameters.byte * slip_bytes(line).count() as u64;
        self.counted.busy += time;
        let arrives = now + self.parameters.byte + self.parameters.delay;
        actions.push(MediumAction::Sending { port, frame });
        actions.push(MediumAction::Arriving { port: 1 - port, at: arrives });
        actions.push(MediumAction::Later {
            at: now + time,
            event: MediumEvent::End { port, plan: 0 },
        });
    }

    /// See [`super::Medium::handle_event`].
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MediumEvent,
        actions: &mut Vec<MediumAction>,
    ) {
        let MediumEvent::End { port, .. } = event else { return };
        let Some(frame) = self.ways[port].outgoing.take() else { return };
        self.counted.frames += 1;
        let at = now + self.parameters.delay;
        actions.push(MediumAction::Arrived { port: 1 - port, at, frame, intact: true });
        actions.push(MediumAction::Sent { port, frame });
    }
}
