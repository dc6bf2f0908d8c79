//! linerate's end of a floor measurement, which transfers data without TCP. This end reads and
//! writes frames directly.

use super::progress::FloorProgress;
use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::own_tcp::{End, LinkWaiter};
use crate::engines::tap::device::{KERNEL, OURS};
use linerate_ends::workload::Pattern;
use linerate_link::Tap;
use linerate_stack::{Link, LinkError, TxFrame};
use linerate_units::Instant;
use linerate_wire::checksum::copy_and_sum;
use linerate_wire::{
    EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, Sum, UdpHeader, VlanTags,
};

/// UDP port of linerate's end, which is the port of the discard service (RFC 863).
pub(crate) const PORT: u16 = 9;
/// Offset of the UDP header in a packet, in bytes.
const UDP: usize = Ipv4Header::LENGTH;
/// Offset of the data in a packet, in bytes.
const DATA: usize = UDP + UdpHeader::LENGTH;
/// Maximum number of frames that are received at once, as in a turn of a host.
const BUDGET: usize = 64;

/// The variable fields in the headers of the frames: the kernel's MAC address and UDP port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// The kernel's MAC address; `None` on a TUN device.
    pub(crate) kernel: Option<MacAddress>,
    /// The kernel's UDP port.
    pub(crate) port: u16,
}

/// linerate's end of a floor measurement.
pub(crate) struct Frames<'a> {
    tap: Tap,
    link_waiter: LinkWaiter,
    headers: Headers,
    request: &'a RunRequest,
    pattern: Pattern,
    /// Maximum number of data bytes in a datagram.
    payload: usize,
    /// The send buffer if this end sends, otherwise the receive buffer. It has room for one
    /// datagram.
    buffer: Vec<u8>,
    /// The program's buffer for a write or a read.
    block: Vec<u8>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(
        tap: Tap,
        headers: Headers,
        payload: usize,
        request: &'a RunRequest,
    ) -> Result<Self, BenchError> {
        let pattern = Pattern::new(request.seed);
        let mut block = vec![0; request.write_size.max(request.read_size)];
        pattern.fill(0, &mut block);
        let buffer = vec![0; payload];
        Ok(Self {
            tap,
            link_waiter: LinkWaiter::new()?,
            headers,
            request,
            pattern,
            payload,
            buffer,
            block,
        })
    }

    /// Sends datagrams until all data has arrived, and returns the device.
    pub(crate) fn send_all(mut self, progress: &FloorProgress<'_>) -> Result<Tap, BenchError> {
        let mut sent = 0;
        progress.begin();
        while !progress.is_complete() {
            sent -= progress.await_room(sent)?;
            let length = self.next_write(sent);
            self.send(length)?;
            sent += length as u64;
        }
        Ok(self.tap)
    }

    /// Copies the data of one datagram from the program to the send buffer: the first of the four
    /// copies of a transfer. `position` is the offset of this data in the transfer. Returns the
    /// number of bytes.
    fn next_write(&mut self, position: u64) -> usize {
        let left =
            usize::try_from(self.request.bytes.saturating_sub(position)).unwrap_or(usize::MAX);
        // When all requested bytes have been sent (`left` is zero), some are still in flight or
        // were dropped. Datagrams of one byte follow until the receiver has read the requested
        // number.
        let length = self.payload.min(self.block.len()).min(left.max(1));
        if self.request.verify {
            self.pattern.fill(position, &mut self.block[..length]);
        }
        self.buffer[..length].copy_from_slice(&self.block[..length]);
        length
    }

    /// Copies `length` bytes of the send buffer to a frame, and computes a checksum: the second of
    /// the four copies of a transfer, and the first of its two checksums.
    fn send(&mut self, length: usize) -> Result<(), BenchError> {
        let (buffer, headers) = (&self.buffer[..length], self.headers);
        let mut is_sent = false;
        while !is_sent {
            let sent = self.tap.transmit(1, |frame| {
                is_sent = true;
                Some(TxFrame::whole(headers.write(buffer, frame)))
            });
            if sent.map_err(broken)? == 0 {
                self.link_waiter.wait(&mut self.tap, Instant::NEVER)?;
            }
        }
        Ok(())
    }

    /// Receives datagrams until all data has arrived, and returns the device.
    pub(crate) fn receive_all(mut self, progress: &FloorProgress<'_>) -> Result<Tap, BenchError> {
        let mut read = 0;
        while !progress.is_complete() {
            let arrived = self.receive(read, progress)?;
            read += arrived as u64;
            if arrived == 0 {
                progress.check()?;
                self.link_waiter.wait(&mut self.tap, Instant::NEVER)?;
            }
        }
        Ok(self.tap)
    }

    /// Receives a batch of datagrams and verifies their checksums. Copies their data to the receive
    /// buffer and to the program: the last two of the four copies of a transfer. Returns the number
    /// of data bytes.
    fn receive(
        &mut self,
        position: u64,
        progress: &FloorProgress<'_>,
    ) -> Result<usize, BenchError> {
        let (buffer, block, mut arrived) = (&mut self.buffer, &mut self.block, 0);
        let (pattern, verify) = (self.pattern, self.request.verify);
        let link_header = self.headers.link_length();
        let received = self.tap.receive(BUDGET, |frame| {
            let Some(data) = frame.bytes.get(link_header..).and_then(data) else { return };
            let length = data.len().min(buffer.len()).min(block.len());
            buffer[..length].copy_from_slice(&data[..length]);
            block[..length].copy_from_slice(&buffer[..length]);
            if verify {
                // The comparison is made because its time belongs to the floor. Its result is
                // ignored, because a dropped datagram is not an error here: it shifts all later
                // data, which then differs from the pattern.
                let _ = pattern.verify(position + arrived as u64, &block[..length]);
            }
            arrived += length;
            progress.deliver(length);
        });
        received.map(|_| arrived).map_err(broken)
    }
}

impl Headers {
    /// Returns the length of the link header in bytes, which is zero on a TUN device.
    const fn link_length(self) -> usize {
        if self.kernel.is_some() { EthernetHeader::LENGTH } else { 0 }
    }

    /// Writes a datagram for the kernel to a frame. Returns the length of the frame.
    fn write(self, data: &[u8], frame: &mut [u8]) -> usize {
        if let Some(destination) = self.kernel {
            let ethernet = EthernetHeader {
                destination,
                source: End::<Tap>::mac(OURS),
                tags: VlanTags::default(),
                ether_type: EtherType::IPV4,
            };
            ethernet.emit(frame);
        }
        let packet = &mut frame[self.link_length()..];
        let ip = Ipv4Header::new(OURS, KERNEL, Protocol::UDP);
        let length = UdpHeader::LENGTH + data.len();
        ip.emit(length, packet);
        let udp = UdpHeader { source_port: PORT, destination_port: self.port };
        udp.emit(data.len(), &mut packet[UDP..]);
        let sum = copy_and_sum(data, &mut packet[DATA..DATA + data.len()]);
        let header_sum = Sum::of(&packet[UDP..DATA]);
        UdpHeader::fill_checksum(&mut packet[UDP..], ip.pseudo_header(length), header_sum + sum);
        self.link_length() + DATA + data.len()
    }
}

/// Returns the data of a UDP datagram with a correct checksum, or `None` for any other packet.
fn data(packet: &[u8]) -> Option<&[u8]> {
    let is_udp = packet.get(9) == Some(&Protocol::UDP.number());
    let datagram = packet.get(UDP..).filter(|_| is_udp)?;
    let length = usize::from(u16::from_be_bytes([*datagram.get(4)?, *datagram.get(5)?]));
    let datagram = datagram.get(..length)?;
    let pseudo = Ipv4Header::new(KERNEL, OURS, Protocol::UDP).pseudo_header(length);
    (pseudo + Sum::of(datagram)).is_valid().then(|| &datagram[UdpHeader::LENGTH..])
}

/// Converts an error of the link to a bench error.
fn broken(error: LinkError) -> BenchError {
    BenchError::ConnectionLost {
        bytes: 0,
        what: format!("the floor failed because of the link: {error}"),
    }
}
