//! A serial line: SLIP (RFC 1055), optionally with header compression (RFC 1144), over a terminal
//! device or a pseudo-terminal.
//!
//! A byte takes ten bit times. The link writes at this pace itself: a pseudo-terminal has no rate
//! of its own, and the driver of a real device would queue kilobytes, seconds at 2,400 baud. So the
//! only queue is that of the link, which accepts a packet while it holds fewer than
//! [`SerialConfig::queue`] bytes. The host keeps the others.
//!
//! Both ends must agree on header compression; there is no negotiation. It needs a host whose
//! packets can be predicted: one that counts packets in the IPv4 identification, and whose segments
//! have no timestamps, which change in every segment (RFC 1144 §3.2.3 compares all options).
//!
//! The first four bits of a packet tell its type. RFC 1144 takes 4 (IPv4), 7 and 8 to 15; so
//! packets of IPv6 (6) pass as they are, with and without compression. Both ends must have an MTU
//! of at least 1,280 bytes for them (RFC 8200 §5).

mod counters;
mod error;
mod queue;
mod terminal;

pub use counters::{DirectionCounters, SerialCounters};
pub use error::{ParseBaudError, SerialError};

use crate::MonotonicClock;
use crate::wait::Readiness;
use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, SMALLEST_MTU, TxFrame};
use linerate_units::{Clock, Instant, Rate};
use linerate_wire::{SlipDecoder, VjCompressor, VjDecompressor, VjError, slip_bytes};
use queue::LineQueue;
use rustix::io::Errno;
use std::ops::{Range, RangeInclusive};
use std::os::fd::{AsFd, BorrowedFd};
use terminal::Terminal;

/// The rates of serial lines, in baud.
pub const BAUD: RangeInclusive<u32> = 50..=4_000_000;
/// The largest MTU in bytes.
pub const LARGEST_MTU: usize = 1_500;
/// Bytes that are read at once.
const INCOMING: usize = 4_096;
/// Bytes that a packet can grow by decompression: the longest headers.
const HEADERS: usize = 128;

/// Parses the rate of a serial line in baud.
///
/// # Errors
/// [`ParseBaudError`].
pub fn parse_baud(text: &str) -> Result<u32, ParseBaudError> {
    let baud = text.parse().ok().filter(|baud| BAUD.contains(baud));
    baud.ok_or_else(|| ParseBaudError(text.to_owned()))
}

/// The properties of a serial line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialConfig {
    /// Bits per second, of which a byte takes ten.
    pub baud: u32,
    /// Are TCP/IP headers compressed? The other end must do the same.
    pub header_compression: bool,
    /// The largest packet to send, in bytes. Packets of up to 1,500 bytes are received.
    pub mtu: usize,
    /// A packet is accepted while fewer bytes than this wait for the line.
    pub queue: usize,
}

impl SerialConfig {
    /// The MTU that RFC 1144 §5.1 recommends for lines with typed characters, in bytes: 256 bytes
    /// of data.
    pub const MTU: usize = 296;
    /// The smallest MTU with IPv6, in bytes (RFC 8200 §5).
    pub const MTU_IPV6: usize = 1_280;

    /// Creates a configuration with header compression and an MTU of 296 bytes. The queue has the
    /// same size, so one packet waits while another one is sent.
    #[must_use]
    pub const fn new(baud: u32) -> Self {
        Self { baud, header_compression: true, mtu: Self::MTU, queue: Self::MTU }
    }

    fn check(&self) -> Result<(), SerialError> {
        if !BAUD.contains(&self.baud) {
            return Err(SerialError::BaudRange(self.baud));
        }
        if !(SMALLEST_MTU..=LARGEST_MTU).contains(&self.mtu) {
            return Err(SerialError::Mtu(self.mtu));
        }
        Ok(())
    }
}

/// A link over a serial line.
///
/// ```
/// use linerate_link::{SerialConfig, SerialLink, Waiter};
/// use linerate_stack::{Link, TxFrame};
/// use linerate_units::Instant;
///
/// let [mut near, mut far] = SerialLink::pair(&SerialConfig::new(115_200))?;
/// near.transmit(1, |packet| {
///     packet[..100].fill(0x45);
///     Some(TxFrame::whole(100))
/// })?;
/// let mut waiter = Waiter::new()?;
/// while far.receive(1, |packet| assert_eq!(packet.bytes, [0x45; 100]))? == 0 {
///     // The packet takes 9 ms, during which the line asks for turns.
///     waiter.wait(&mut near, Instant::NEVER)?;
///     near.transmit(0, |_| None)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SerialLink {
    terminal: Terminal,
    capabilities: Capabilities,
    config: SerialConfig,
    compressor: Option<Box<VjCompressor>>,
    decompressor: Option<Box<VjDecompressor>>,
    decoder: SlipDecoder<Box<[u8]>>,
    incoming: Box<[u8]>,
    /// The bytes in `incoming` that are not decoded yet.
    unread: Range<usize>,
    /// The packet that is decompressed.
    packet: Box<[u8]>,
    /// The packet that the host writes.
    outgoing: Box<[u8]>,
    queue: LineQueue,
    /// Has the device no room for bytes that are due?
    is_blocked: bool,
    /// Is the other end closed?
    is_over: bool,
    counters: SerialCounters,
}

impl SerialLink {
    /// Opens the terminal at `device`, such as `/dev/ttyS0` or `/dev/pts/3`. It is put into raw
    /// mode at this rate until the link is dropped, and is locked against other programs.
    ///
    /// # Errors
    /// [`SerialError`].
    pub fn open(device: &str, config: &SerialConfig) -> Result<Self, SerialError> {
        config.check()?;
        Ok(Self::over(Terminal::open(device, config.baud)?, config))
    }

    /// Creates a pseudo-terminal, and returns both ends of the line.
    ///
    /// # Errors
    /// [`SerialError`].
    pub fn pair(config: &SerialConfig) -> Result<[Self; 2], SerialError> {
        config.check()?;
        Ok(Terminal::pair(config.baud)?.map(|terminal| Self::over(terminal, config)))
    }

    fn over(terminal: Terminal, config: &SerialConfig) -> Self {
        let rate = Rate::from_bits_per_second(config.baud.into());
        let capabilities =
            Capabilities { rate: Some(rate), ..Capabilities::new(Medium::Ip, config.mtu) };
        Self {
            terminal,
            capabilities,
            config: config.clone(),
            compressor: config.header_compression.then(Box::default),
            decompressor: config.header_compression.then(Box::default),
            decoder: SlipDecoder::new(vec![0; LARGEST_MTU].into()),
            incoming: vec![0; INCOMING].into(),
            unread: 0..0,
            packet: vec![0; LARGEST_MTU + HEADERS].into(),
            outgoing: vec![0; config.mtu].into(),
            queue: LineQueue::new(config.baud),
            is_blocked: false,
            is_over: false,
            counters: SerialCounters::default(),
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &SerialConfig {
        &self.config
    }

    /// Returns the counters. Packets count as sent when they are accepted.
    #[must_use]
    pub const fn counters(&self) -> &SerialCounters {
        &self.counters
    }

    /// Writes the bytes that have left the line by `now`.
    fn flush(&mut self, now: Instant) -> Result<(), LinkError> {
        self.is_blocked = false;
        loop {
            let due = self.queue.due(now);
            if due.is_empty() {
                return Ok(());
            }
            match self.terminal.write(due) {
                Ok(0) => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Ok(count) => self.queue.consume(count),
                Err(errno) => return Err(self.failed("write to the serial line", errno)),
            }
        }
    }

    fn failed(&mut self, what: &'static str, errno: Errno) -> LinkError {
        if errno == Errno::PIPE {
            self.is_over = true;
            return LinkError::Down;
        }
        LinkError::Io { errno: errno.raw_os_error(), what }
    }

    /// Compresses the first `length` bytes of the outgoing packet, and puts them into the queue.
    fn enqueue(&mut self, now: Instant, length: usize) {
        let whole = &mut self.outgoing[..length];
        let sent = &mut self.counters.sent;
        sent.packets += 1;
        sent.packet_bytes += length as u64;
        let packet = match &mut self.compressor {
            Some(compressor) => compressor.compress(whole),
            None => whole,
        };
        sent.compressed_bytes += packet.len() as u64;
        match packet[0] {
            0x80.. => sent.compressed += 1,
            0x70..0x80 => sent.whole_headers += 1,
            _ => {}
        }
        // The END of the packet before it separates this one, unless noise can come in between.
        let before = self.queue.length();
        self.queue.push(now, slip_bytes(packet).skip(usize::from(before > 0)));
        sent.line_bytes += (self.queue.length() - before) as u64;
    }

    /// Reads from the line. Returns whether something came.
    fn read(&mut self) -> Result<bool, LinkError> {
        match self.terminal.read(&mut self.incoming) {
            Ok(count) => {
                self.unread = 0..count;
                self.counters.received.line_bytes += count as u64;
                Ok(count > 0)
            }
            Err(errno) => Err(self.failed("read from the serial line", errno)),
        }
    }

    /// Passes the next complete packet to `on_frame`. Returns false if none is left in the buffer.
    fn next_packet(&mut self, now: Instant, on_frame: &mut impl FnMut(RxFrame<'_>)) -> bool {
        for at in self.unread.by_ref() {
            let before = self.decoder.discarded();
            let Some(line) = self.decoder.take(self.incoming[at]) else {
                if self.decoder.discarded() > before {
                    self.counters.errors += 1;
                    self.decompressor.iter_mut().for_each(|decompressor| decompressor.note_error());
                }
                continue;
            };
            let length = line.len() as u64;
            let kind = line[0];
            let packet = match &mut self.decompressor {
                Some(decompressor) => match decompressor.expand(line, &mut self.packet) {
                    Ok(length) => &self.packet[..length],
                    Err(VjError::UnknownConnection) => {
                        self.counters.tossed += 1;
                        continue;
                    }
                    Err(_) => {
                        self.counters.errors += 1;
                        continue;
                    }
                },
                None if is_ip(kind) => &*line,
                None => {
                    self.counters.errors += 1;
                    continue;
                }
            };
            let received = &mut self.counters.received;
            received.packets += 1;
            received.packet_bytes += packet.len() as u64;
            received.compressed_bytes += length;
            received.compressed += u64::from(kind >= 0x80);
            received.whole_headers += u64::from((0x70..0x80).contains(&kind));
            on_frame(RxFrame::plain(packet, now));
            return true;
        }
        false
    }
}

/// Does a packet with this first byte belong to IPv4 or IPv6?
const fn is_ip(first: u8) -> bool {
    matches!(first >> 4, 4 | 6)
}

impl Link for SerialLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        if self.is_over {
            return Err(LinkError::Down);
        }
        let mut received = 0;
        while received < budget {
            if self.next_packet(MonotonicClock.now(), &mut on_frame) {
                received += 1;
            } else if !self.read()? {
                break;
            }
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        if self.is_over {
            return Err(LinkError::Down);
        }
        let now = MonotonicClock.now();
        self.flush(now)?;
        let mut sent = 0;
        while sent < budget && self.queue.length() < self.config.queue {
            let Some(frame) = fill(&mut self.outgoing) else { break };
            let length = frame.length.min(self.outgoing.len());
            if length > 0 {
                self.enqueue(now, length);
            }
            sent += 1;
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl Readiness for SerialLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn wants_room(&self) -> bool {
        self.is_blocked
    }

    /// Bytes in the buffer are not announced by the descriptor.
    fn is_ready(&mut self) -> bool {
        self.is_over || !self.unread.is_empty()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        !self.is_ready()
    }

    fn awake(&mut self, _signalled: bool) {}

    /// Returns the time of the next write. While the device has no room, its descriptor tells.
    fn next_deadline(&self) -> Instant {
        if self.is_blocked { Instant::NEVER } else { self.queue.next_write() }
    }
}

#[cfg(test)]
mod tests;
