//! A serial line between two hosts. Packets are framed by SLIP (RFC 1055); their headers can be
//! compressed (RFC 1144). The model decompresses each compressed packet, and asserts that the
//! result is the original packet.

use super::{MediumAction, MediumEvent, MediumStatistics, Port};
use crate::frame::{FrameId, Frames};
use crate::parameter::{ParameterError, Section};
use linerate_units::{Rate, Span, Tick};
use linerate_wire::{VjCompressor, VjDecompressor, slip_bytes};

/// Upper limit of the bits that a byte takes on the line, with start and stop bits.
const MOST_BITS: u64 = 64;

/// Parameters of a serial line.
#[derive(Clone, Debug)]
pub(crate) struct SerialParameters {
    pub(crate) rate: Rate,
    /// Time to send a byte with its start and stop bits.
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
    directions: [Direction; 2],
    counted: MediumStatistics,
}

/// One direction of a serial line.
#[derive(Debug, Default)]
struct Direction {
    compressor: VjCompressor,
    decompressor: VjDecompressor,
    outgoing: Option<FrameId>,
    packet: Vec<u8>,
    restored: Vec<u8>,
}

impl Direction {
    /// Returns a packet encoded as the bytes to send on the line. If `compression` is set, its
    /// TCP/IP header is compressed first.
    fn compress(&mut self, packet: &[u8], compression: bool) -> &[u8] {
        self.packet.clear();
        self.packet.extend_from_slice(packet);
        if !compression {
            return &self.packet;
        }
        let line = self.compressor.compress(&mut self.packet);
        self.restored.resize(packet.len(), 0);
        let restored = self.decompressor.expand(line, &mut self.restored);
        assert_eq!(restored, Ok(packet.len()), "the other end decompresses the header");
        assert_eq!(self.restored, packet, "the decompressed packet equals the original");
        line
    }
}

impl Serial {
    /// Creates a serial line.
    pub(crate) fn new(parameters: SerialParameters) -> Self {
        Self { parameters, directions: Default::default(), counted: MediumStatistics::default() }
    }

    pub(crate) const fn statistics(&self) -> &MediumStatistics {
        &self.counted
    }

    /// Handles a host's request to send a packet, see [`super::Medium::handle_request`].
    pub(crate) fn handle_request(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        frames: &Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let direction = &mut self.directions[port];
        assert!(direction.outgoing.is_none(), "a station sends one frame at a time");
        direction.outgoing = Some(frame);
        let line = direction.compress(frames[frame].bytes(), self.parameters.compression);
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

    /// Handles an expired timer, see [`super::Medium::handle_event`].
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MediumEvent,
        actions: &mut Vec<MediumAction>,
    ) {
        let MediumEvent::End { port, .. } = event else { return };
        let Some(frame) = self.directions[port].outgoing.take() else { return };
        self.counted.frames += 1;
        let at = now + self.parameters.delay;
        actions.push(MediumAction::Arrived { port: 1 - port, at, frame, intact: true });
        actions.push(MediumAction::Sent { port, frame });
    }
}
