//! The link between the host and the script. It is a queue of IP packets without delay. If the
//! script specifies a serial line, each packet is also encoded for the line and decoded again.

use crate::ip_packet::ParsedPacket;
use crate::syntax::{Line, LineMark};
use linerate_link::serial::{LineDecoder, LineEncoder, LineInput};
use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, TxFrame};
use linerate_units::Instant;
use linerate_wire::{Protocol, Segment, slip_bytes};
use std::collections::VecDeque;

/// Maximum number of packets in the queue. The script takes them after every turn.
const ROOM: usize = 4_096;

/// A link that carries IP packets without a link-layer header.
#[derive(Debug)]
pub(super) struct ScriptLink {
    mtu: usize,
    arrived: VecDeque<(Instant, Vec<u8>)>,
    sent: VecDeque<(Vec<u8>, Option<LineMark>)>,
    line: Option<SerialLine>,
}

/// The two endpoints of a serial line.
#[derive(Debug)]
struct SerialLine {
    host: LineEnd,
    peer: LineEnd,
}

#[derive(Debug)]
struct LineEnd {
    encoder: LineEncoder,
    decoder: LineDecoder,
}

impl ScriptLink {
    pub(super) fn new(mtu: usize, line: Option<Line>) -> Self {
        let end = |line| {
            let compresses = line == Line::Cslip;
            LineEnd { encoder: LineEncoder::new(compresses), decoder: LineDecoder::new(compresses) }
        };
        Self {
            mtu,
            arrived: VecDeque::new(),
            sent: VecDeque::new(),
            line: line.map(|line| SerialLine { host: end(line), peer: end(line) }),
        }
    }

    /// Delivers a packet to the host. `mark` can request that the serial line damages or loses it.
    ///
    /// # Errors
    /// The reason why the packet cannot be damaged or lost, such as the lack of a serial line.
    pub(super) fn put(
        &mut self,
        now: Instant,
        packet: &[u8],
        mark: Option<LineMark>,
    ) -> Result<(), String> {
        match &mut self.line {
            None if mark.is_some() => {
                return Err(
                    "only a serial line damages and loses packets: write --line=cslip".to_owned()
                );
            }
            None => self.arrived.push_back((now, packet.to_vec())),
            Some(line) => {
                let arrived = line.carry_to_host(packet, mark);
                self.arrived.extend(arrived.map(|packet| (now, packet)));
            }
        }
        Ok(())
    }

    /// Takes the next packet that the host sent, with its encoding on a serial line; `None` if
    /// there is no packet.
    pub(super) fn fetch(&mut self) -> Option<(Vec<u8>, Option<LineMark>)> {
        self.sent.pop_front()
    }
}

impl SerialLine {
    /// Carries a packet over the line to the host. `mark` can request that the line damages or
    /// loses it. Returns the packet as it arrives, or `None` if it does not arrive.
    fn carry_to_host(&mut self, packet: &[u8], mark: Option<LineMark>) -> Option<Vec<u8>> {
        /// An escape byte, and a byte that may not follow it (RFC 1055).
        const INVALID: [u8; 2] = [0o333, 0];
        let mut packet = packet.to_vec();
        let encoded = self.peer.encoder.compress(&mut packet);
        let bytes: Vec<u8> = slip_bytes(encoded).collect();
        match mark {
            Some(LineMark::Lost) => None,
            Some(LineMark::Damaged) => {
                let (begin, rest) = bytes.split_at(2);
                self.host.receive(begin.iter().chain(&INVALID).chain(rest))
            }
            _ => self.host.receive(&bytes),
        }
    }

    /// Carries a packet from the host over the line to its peer. Returns the packet as it arrives,
    /// with its encoding on the line, or `None` if it does not arrive.
    fn carry_to_peer(&mut self, packet: &[u8]) -> Option<(Vec<u8>, LineMark)> {
        let data = bytes_of_data(packet);
        let mut packet = packet.to_vec();
        let encoded = self.host.encoder.compress(&mut packet);
        let mark = match encoded.first()? {
            0x80.. => {
                let headers = data.map(|data| encoded.len().saturating_sub(data));
                LineMark::Compressed(headers.and_then(|length| u16::try_from(length).ok()))
            }
            0x70..0x80 => LineMark::Uncompressed,
            _ => LineMark::Plain,
        };
        let bytes: Vec<u8> = slip_bytes(encoded).collect();
        Some((self.peer.receive(&bytes)?, mark))
    }
}

impl LineEnd {
    /// Decodes the bytes of one packet. Returns `None` if they contain no valid packet.
    fn receive<'a>(&mut self, bytes: impl IntoIterator<Item = &'a u8>) -> Option<Vec<u8>> {
        bytes.into_iter().find_map(|&byte| match self.decoder.take(byte) {
            Some(LineInput::Packet { packet, .. }) => Some(packet.to_vec()),
            _ => None,
        })
    }
}

/// Returns the number of data bytes of a TCP segment, or `None` for any other packet.
fn bytes_of_data(packet: &[u8]) -> Option<usize> {
    let packet = ParsedPacket::parse(packet).ok()?;
    let segment = Segment::parse(packet.payload).ok().filter(|_| packet.protocol == Protocol::TCP);
    Some(segment?.payload.len())
}

impl Link for ScriptLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let count = self.arrived.len().min(budget);
        for (arrived, bytes) in self.arrived.drain(..count) {
            on_frame(RxFrame::plain(&bytes, arrived));
        }
        Ok(count)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let room = budget.min(ROOM.saturating_sub(self.sent.len()));
        for count in 0..room {
            let mut packet = vec![0; self.mtu];
            let Some(TxFrame { length, .. }) = fill(&mut packet) else { return Ok(count) };
            packet.truncate(length);
            match &mut self.line {
                None => self.sent.push_back((packet, None)),
                Some(line) => {
                    let arrived = line.carry_to_peer(&packet);
                    self.sent.extend(arrived.map(|(packet, mark)| (packet, Some(mark))));
                }
            }
        }
        Ok(room)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Medium::Ip, self.mtu)
    }
}
