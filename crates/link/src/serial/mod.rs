//! A serial line: SLIP (RFC 1055), optionally with header compression (RFC 1144), over a terminal
//! device or a pseudo-terminal.
//!
//! A byte takes ten bit times. The link itself writes bytes at this pace, for two reasons. A
//! pseudo-terminal has no rate. The driver of a real device would accept kilobytes at once, which
//! then wait there for seconds at 2,400 baud. At this pace, packets wait only in the link's own
//! queue. While this queue holds at least [`SerialConfig::queue`] bytes, the link accepts no
//! packet, and further packets stay with the host.
//!
//! Both endpoints must have an equal setting of header compression, because nothing is negotiated.
//! Compression needs predictable headers: the IPv4 identification must grow by one per packet, and
//! segments must have no timestamps. A segment is not compressed if its TCP options differ from
//! those of the previous segment (RFC 1144 §3.2.3), and timestamps differ in nearly every segment.
//!
//! The first four bits of a packet specify its type. RFC 1144 uses the types 4 (IPv4) and 7 to 15.
//! Type 6 (IPv6) is free, so IPv6 packets pass unchanged, with and without compression. For IPv6,
//! both endpoints must have an MTU of at least 1,280 bytes (RFC 8200 §5).

mod codec;
mod counters;
mod error;
mod queue;
mod terminal;

pub use codec::{LineDecoder, LineEncoder, LineInput};
pub use counters::{DirectionCounters, SerialCounters};
pub use error::{ParseBaudError, SerialError};

use crate::MonotonicClock;
use crate::wait::Readiness;
use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, SMALLEST_MTU, TxFrame};
use linerate_units::{Clock, Instant, Rate};
use linerate_wire::slip_bytes;
use queue::LineQueue;
use rustix::io::Errno;
use std::ops::{Range, RangeInclusive};
use std::os::fd::{AsFd, BorrowedFd};
use terminal::Terminal;

/// The permitted rates of serial lines, in baud.
pub const BAUD: RangeInclusive<u32> = 50..=4_000_000;
/// The largest permitted MTU, in bytes.
pub const LARGEST_MTU: usize = 1_500;
/// The maximum number of bytes that one system call reads from the device.
const INCOMING: usize = 4_096;

/// Parses the rate of a serial line in baud.
///
/// # Errors
/// [`ParseBaudError`] if the text is not a number in [`BAUD`].
pub fn parse_baud(text: &str) -> Result<u32, ParseBaudError> {
    let baud = text.parse().ok().filter(|baud| BAUD.contains(baud));
    baud.ok_or_else(|| ParseBaudError(text.to_owned()))
}

/// The configuration of a serial line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialConfig {
    /// The rate in bits per second. A byte takes ten bits.
    pub baud: u32,
    /// Whether TCP/IP headers are compressed. The peer must have the same setting.
    pub header_compression: bool,
    /// The length of the largest packet that is sent, in bytes. Larger packets, of up to 1,500
    /// bytes, are still received.
    pub mtu: usize,
    /// The limit of the link's queue in bytes. The link accepts no packet while at least this many
    /// bytes wait to be written.
    pub queue: usize,
}

impl SerialConfig {
    /// The MTU that RFC 1144 §5.1 recommends for interactive lines, in bytes. A packet has room for
    /// 256 bytes of data and for the headers.
    pub const MTU: usize = 296;
    /// The smallest MTU that IPv6 permits, in bytes (RFC 8200 §5).
    pub const MTU_IPV6: usize = 1_280;

    /// Creates a configuration with header compression and an MTU of 296 bytes. The limit of the
    /// queue equals the MTU, so that a second packet can be queued before the first has been
    /// written.
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
///     // The line transmits the packet in 9 ms. The waiter returns each time more bytes are due,
///     // and `transmit()` writes them, even if no new packet is passed.
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
    encoder: LineEncoder,
    decoder: LineDecoder,
    incoming: Box<[u8]>,
    /// The range of `incoming` that has not been decoded yet.
    unread: Range<usize>,
    /// The buffer into which the host writes the packet to be sent.
    outgoing: Box<[u8]>,
    queue: LineQueue,
    /// Whether bytes are due to be written, but the most recent write found that the device has no
    /// room.
    is_blocked: bool,
    /// Whether the peer has closed the line.
    is_over: bool,
    counters: SerialCounters,
}

impl SerialLink {
    /// Opens the terminal at `device`, such as `/dev/ttyS0` or `/dev/pts/3`. Until the link is
    /// dropped, the terminal is in raw mode at the configured rate, and locked against other
    /// programs.
    ///
    /// # Errors
    /// [`SerialError`], such as for a missing device, or for a rate that the device does not
    /// support.
    pub fn open(device: &str, config: &SerialConfig) -> Result<Self, SerialError> {
        config.check()?;
        Ok(Self::over(Terminal::open(device, config.baud)?, config))
    }

    /// Creates a pseudo-terminal, and returns a link for each of its two ends.
    ///
    /// # Errors
    /// [`SerialError`], such as for an invalid configuration.
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
            encoder: LineEncoder::new(config.header_compression),
            decoder: LineDecoder::new(config.header_compression),
            incoming: vec![0; INCOMING].into(),
            unread: 0..0,
            outgoing: vec![0; config.mtu].into(),
            queue: LineQueue::new(config.baud),
            is_blocked: false,
            is_over: false,
            counters: SerialCounters::default(),
        }
    }

    /// Returns the configuration of the line.
    #[must_use]
    pub const fn config(&self) -> &SerialConfig {
        &self.config
    }

    /// Returns the counters of the line. A packet counts as sent when the link has accepted it.
    #[must_use]
    pub const fn counters(&self) -> &SerialCounters {
        &self.counters
    }

    /// Writes to the device the bytes that a real line would have transmitted by `now`.
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

    /// Takes the packet in the first `length` bytes of `outgoing`. Compresses its headers, adds the
    /// framing of SLIP, and queues the result for writing.
    fn enqueue(&mut self, now: Instant, length: usize) {
        let whole = &mut self.outgoing[..length];
        let sent = &mut self.counters.sent;
        sent.packets += 1;
        sent.packet_bytes += length as u64;
        let packet = self.encoder.compress(whole);
        sent.compressed_bytes += packet.len() as u64;
        match packet[0] {
            0x80.. => sent.compressed += 1,
            0x70..0x80 => sent.whole_headers += 1,
            _ => {}
        }
        // If the line was idle, noise may have arrived at the receiver, so an END must separate it
        // from this packet. If another packet is still in the queue, its final END separates the
        // two packets, and the leading END is omitted.
        let before = self.queue.length();
        self.queue.push(now, slip_bytes(packet).skip(usize::from(before > 0)));
        sent.line_bytes += (self.queue.length() - before) as u64;
    }

    /// Reads bytes from the device into `incoming`, after all previous ones were decoded. Returns
    /// whether any were read.
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

    /// Decodes bytes of the buffer until a packet is complete, and passes the packet to `on_frame`.
    /// Returns false if the buffer ends before that.
    fn next_packet(&mut self, now: Instant, on_frame: &mut impl FnMut(RxFrame<'_>)) -> bool {
        for at in self.unread.by_ref() {
            let (packet, line_length, kind) = match self.decoder.take(self.incoming[at]) {
                None => continue,
                Some(LineInput::Packet { packet, line_length, kind }) => {
                    (packet, line_length, kind)
                }
                Some(LineInput::Damaged) => {
                    self.counters.errors += 1;
                    continue;
                }
                Some(LineInput::Tossed) => {
                    self.counters.tossed += 1;
                    continue;
                }
            };
            let received = &mut self.counters.received;
            received.packets += 1;
            received.packet_bytes += packet.len() as u64;
            received.compressed_bytes += line_length as u64;
            received.compressed += u64::from(kind >= 0x80);
            received.whole_headers += u64::from((0x70..0x80).contains(&kind));
            on_frame(RxFrame::plain(packet, now));
            return true;
        }
        false
    }
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

    /// Returns true if the buffer contains bytes that are not decoded yet. This method must report
    /// them, because the descriptor does not become readable for them. Also returns true if the
    /// peer has closed the line, so that the caller calls `receive` or `transmit`, which report it.
    fn is_ready(&mut self) -> bool {
        self.is_over || !self.unread.is_empty()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        !self.is_ready()
    }

    fn awake(&mut self, _signalled: bool) {}

    /// Returns the time at which the next bytes are due to be written. While the device has no
    /// room, returns [`Instant::NEVER`]: the waiter then waits until the descriptor is writable.
    fn next_deadline(&self) -> Instant {
        if self.is_blocked { Instant::NEVER } else { self.queue.next_write() }
    }
}

#[cfg(test)]
mod tests;
