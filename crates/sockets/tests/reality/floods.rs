//! Measures the rate of a bulk transfer during a flood, as a fraction of the rate without a flood.
//! The frames of the flood belong to no connection. The test measures on a real clock, so it runs
//! only on request, and it asserts nothing:
//!
//! ```text
//! LINERATE_FLOODS=5 cargo test --release -p linerate-sockets --test reality floods -- --nocapture
//! ```
//!
//! The value 5 of `LINERATE_FLOODS` is the number of repetitions of each case.
//! `LINERATE_FLOODS_OVER=memory` or `tap` selects one kind of link, and `LINERATE_FLOODS_OF=SYNs`
//! one kind of flood. Over a memory link, the receiver's link generates the flood. Over TAP, a
//! thread of this process sends the flood through a packet socket on the kernel's interface. This
//! thread, the kernel's sender and our host share two processors.

use crate::kernel::{KERNEL, OURS, configure_kernel_end, network_on, open};
use crate::setting;
use linerate_link::memory::{MemoryConfig, pair};
use linerate_link::namespace::isolated_test;
use linerate_link::{MonotonicClock, PacketConfig, PacketLink, Readiness, TapConfig};
use linerate_sockets::{ListenOptions, Net, StackConfig};
use linerate_stack::{
    Capabilities, FrameSink, FrameSource, Link, LinkError, Route, RxFrame, TxFrame,
};
use linerate_units::{Clock, Duration, Instant};
use linerate_wire::{
    EtherType, EthernetHeader, Ipv4Header, MacAddress, Protocol, SeqNum, Sum, TcpFlags, TcpHeader,
    TcpOptions, VlanTags,
};
use oorandom::Rand64;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{thread, time};

/// Duration of a transfer.
const SPAN: time::Duration = time::Duration::from_millis(500);

/// Number of frames that are prepared before a flood. The flood sends them repeatedly.
const PREPARED: usize = 4_096;

/// Maximum number of frames that wait at a link while its host is busy. More frames are lost, as if
/// the receive ring of a NIC were full.
const QUEUE: u64 = 512;

/// The address of a listener at our host. Only the flood sends segments to it; the measured
/// transfer uses another port.
const SERVICE: SocketAddrV4 = SocketAddrV4::new(OURS, 80);

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A kind of flood: its frames, and the number of frames per second.
#[derive(Clone, Copy, Debug)]
struct Flood {
    name: &'static str,
    rate: u64,
    frame: fn(&mut Rand64) -> Vec<u8>,
}

/// A function that runs a transfer, during a flood if one is given. Returns bytes per second.
type Transfer = fn(Option<Flood>) -> f64;

const FLOODS: [Flood; 6] = [
    // Our host drops these frames at once, because their MAC address is not its own. So this case
    // measures only the cost of producing the flood and passing it through the link. The other
    // cases include this cost, too.
    Flood { name: "frames for another host", rate: 100_000, frame: misdirected_syn },
    Flood { name: "random frames", rate: 20_000, frame: random_frame },
    Flood { name: "fragments", rate: 20_000, frame: fragment },
    Flood { name: "SYNs", rate: 20_000, frame: syn },
    Flood { name: "SYNs", rate: 100_000, frame: syn },
    Flood { name: "ACKs to a closed port", rate: 100_000, frame: stray_ack },
];

#[test]
fn what_a_transfer_keeps_of_its_rate_in_a_flood() {
    if setting::<usize>("LINERATE_FLOODS", "0") == 0 {
        return;
    }
    isolated_test(|| {
        let repeats = setting::<usize>("LINERATE_FLOODS", "0");
        let over = setting::<String>("LINERATE_FLOODS_OVER", "");
        println!("{:<32} {:<28} {:>10}  kept", "transfer", "flood", "MB/s");
        let cases: [(&str, Transfer); 4] = [
            ("memory", over_memory),
            ("tap, receiving", |flood| over_tap(flood, false, true)),
            ("tap with offloads, receiving", |flood| over_tap(flood, true, true)),
            ("tap with offloads, sending", |flood| over_tap(flood, true, false)),
        ];
        for (name, transfer) in cases.iter().filter(|case| case.0.starts_with(&over)) {
            let of = setting::<String>("LINERATE_FLOODS_OF", "");
            for flood in FLOODS.into_iter().filter(|flood| flood.name.starts_with(&of)) {
                report(name, *transfer, flood, repeats);
            }
        }
    });
}

/// Makes `repeats` pairs of transfers, one without and one with the flood. Prints the median rate
/// without the flood. Then prints the median, the minimum and the maximum of the ratios of the rate
/// with the flood to the rate without it.
fn report(name: &str, transfer: Transfer, flood: Flood, repeats: usize) {
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        let undisturbed = transfer(None);
        rates.push(undisturbed / 1e6);
        ratios.push(transfer(Some(flood)) / undisturbed);
    }
    ratios.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);
    let what = format!("{} {}/s", flood.name, flood.rate);
    println!(
        "{name:<32} {what:<28} {:>10.0}  {:.2} [{:.2} .. {:.2}]",
        rates[repeats / 2],
        ratios[repeats / 2],
        ratios[0],
        ratios[repeats - 1]
    );
}

/// Runs a transfer between two networks over a memory link. The flood arrives at the receiving
/// network. Returns bytes per second.
fn over_memory(flood: Option<Flood>) -> f64 {
    let (left, right) = pair(MemoryConfig::default()).unwrap();
    let flooded = Flooded::new(left, flood);
    let server = Net::builder(flooded, config(OURS, MAC)).start().unwrap();
    let client = Net::builder(right, config(KERNEL, [2, 0, 0, 0, 0, 1])).start().unwrap();
    let _service = server.bind_with(SERVICE, &ListenOptions::default()).unwrap();
    let listener = server.bind((OURS, 9)).unwrap();
    let from = client.connect((OURS, 9)).unwrap();
    let to = listener.accept().unwrap().0;
    let rate = thread::scope(|scope| {
        scope.spawn(|| write_until_closed(&from));
        to.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
        let rate = read_for_a_while(&to);
        client.shutdown();
        rate
    });
    server.shutdown();
    rate
}

fn config(address: Ipv4Addr, mac: [u8; 6]) -> StackConfig {
    let network = format!("{address}/24").parse().unwrap();
    let mut config = StackConfig::new(MacAddress::new(mac), network);
    if address == OURS {
        // The flood has random source addresses. With this default route, our host can answer them,
        // so the measurement includes the cost of the answers.
        config.routes.push(Route::via("0.0.0.0/0".parse().unwrap(), KERNEL));
    }
    config
}

/// Runs a transfer between the kernel and our host, to our host if `receiving` is set. The flood
/// arrives at our host. Returns bytes per second.
fn over_tap(flood: Option<Flood>, offloads: bool, receiving: bool) -> f64 {
    let tap = open(&TapConfig { offloads, ..TapConfig::default() }).expect("a device");
    configure_kernel_end(&tap, KERNEL);
    let (net, interface) = network_on(tap, |tap| tap, |ours| *ours = config(OURS, MAC));
    let _service = net.bind_with(SERVICE, &ListenOptions::default()).unwrap();
    let over = &AtomicBool::new(false);
    let rate = thread::scope(|scope| {
        if let Some(flood) = flood {
            let link = PacketLink::open(&PacketConfig::new(interface.name())).unwrap();
            scope.spawn(move || send_flood(link, flood, over));
        }
        let listener = TcpListener::bind((KERNEL, 0)).unwrap();
        let ours = net.connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        let rate = if receiving { receive(ours, &theirs) } else { send(&net, &ours, &theirs) };
        over.store(true, Ordering::Relaxed);
        rate
    });
    net.shutdown();
    rate
}

/// Measures the rate at which the kernel sends to our host. Then drops `ours` while data is unread:
/// this resets the connection, which stops the sender.
fn receive(ours: linerate_sockets::TcpStream, theirs: &TcpStream) -> f64 {
    thread::scope(|scope| {
        scope.spawn(|| write_until_closed(theirs));
        ours.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
        let rate = read_for_a_while(&ours);
        drop(ours);
        rate
    })
}

/// Measures the rate at which our host sends to the kernel. Then ends our network, which stops the
/// sender.
fn send(net: &Net, ours: &linerate_sockets::TcpStream, theirs: &TcpStream) -> f64 {
    thread::scope(|scope| {
        scope.spawn(|| write_until_closed(ours));
        theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
        let rate = read_for_a_while(theirs);
        net.shutdown();
        rate
    })
}

/// Writes zeros until the stream fails.
fn write_until_closed(mut to: impl Write) {
    while to.write_all(&[0; 60_000]).is_ok() {}
}

/// Reads for [`SPAN`], after a warm-up of a fifth of that time. Returns bytes per second, without
/// the warm-up.
fn read_for_a_while(mut from: impl Read) -> f64 {
    let mut piece = vec![0; 1 << 18];
    let mut read = |span| {
        let (start, mut bytes) = (time::Instant::now(), 0_u64);
        while start.elapsed() < span {
            match from.read(&mut piece) {
                Ok(count) => bytes += count as u64,
                Err(error) => {
                    let is_late =
                        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                    assert!(is_late, "{error}");
                }
            }
        }
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = bytes as f64 / start.elapsed().as_secs_f64();
        rate
    };
    read(SPAN / 5);
    read(SPAN)
}

/// The frames of a flood, each with its arrival time.
struct Frames {
    prepared: Vec<Vec<u8>>,
    rate: u64,
    start: Instant,
    /// Number of frames that have left the queue, because they were delivered or lost.
    passed: u64,
}

impl Frames {
    fn new(flood: Flood) -> Self {
        let mut random = Rand64::new(23);
        let prepared = (0..PREPARED).map(|_| (flood.frame)(&mut random)).collect();
        Self { prepared, rate: flood.rate, start: MonotonicClock.now(), passed: 0 }
    }

    /// Returns the number of frames that wait in the queue at `now`. The queue has room for
    /// [`QUEUE`] frames; if more have arrived, the oldest count as lost.
    fn due(&mut self, now: Instant) -> u64 {
        let come = now.since(self.start).as_nanos() / 1_000 * self.rate / 1_000_000;
        self.passed = self.passed.max(come.saturating_sub(QUEUE));
        come - self.passed
    }

    fn next(&mut self) -> &[u8] {
        self.passed += 1;
        &self.prepared[usize::try_from(self.passed).unwrap() % PREPARED]
    }

    fn next_deadline(&self) -> Instant {
        self.start + Duration::from_nanos((self.passed + 1) * 1_000_000_000 / self.rate + 1_000)
    }
}

/// A link at which the frames of a flood arrive in addition to its own frames.
struct Flooded<L> {
    link: L,
    frames: Option<Frames>,
}

impl<L> Flooded<L> {
    fn new(link: L, flood: Option<Flood>) -> Self {
        Self { link, frames: flood.map(Frames::new) }
    }

    fn is_due(&mut self) -> bool {
        self.frames.as_mut().is_some_and(|frames| frames.due(MonotonicClock.now()) > 0)
    }
}

impl<L: Link> Link for Flooded<L> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let mut came = 0;
        if let Some(frames) = &mut self.frames {
            let now = MonotonicClock.now();
            // A batch contains frames of the flood first, and then frames of the measured transfer,
            // which `link` receives. The flood gets at most half of the batch, so that the transfer
            // can continue.
            while came < budget / 2 && frames.due(now) > 0 {
                on_frame(RxFrame::plain(frames.next(), now));
                came += 1;
            }
        }
        Ok(came + self.link.receive(budget - came, on_frame)?)
    }

    fn receive_into(
        &mut self,
        budget: usize,
        sink: &mut impl FrameSink,
    ) -> Result<usize, LinkError> {
        let mut came = 0;
        if let Some(frames) = &mut self.frames {
            let now = MonotonicClock.now();
            while came < budget / 2 && frames.due(now) > 0 {
                sink.take(RxFrame::plain(frames.next(), now));
                came += 1;
            }
        }
        Ok(came + self.link.receive_into(budget - came, sink)?)
    }

    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.link.transmit(budget, fill)
    }

    fn transmit_from(
        &mut self,
        budget: usize,
        source: &mut impl FrameSource,
    ) -> Result<usize, LinkError> {
        self.link.transmit_from(budget, source)
    }

    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }
}

impl<L: Readiness> Readiness for Flooded<L> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.wakeup_fd()
    }

    fn wants_room(&self) -> bool {
        self.link.wants_room()
    }

    fn is_ready(&mut self) -> bool {
        self.is_due() || self.link.is_ready()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        !self.is_due() && self.link.prepare_to_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.link.awake(signalled);
    }

    fn next_deadline(&self) -> Instant {
        let ours = self.frames.as_ref().map_or(Instant::NEVER, Frames::next_deadline);
        ours.min(self.link.next_deadline())
    }
}

/// Sends a flood into the interface until `over` is set.
fn send_flood(mut link: PacketLink, flood: Flood, over: &AtomicBool) {
    let mut frames = Frames::new(flood);
    while !over.load(Ordering::Relaxed) {
        let due = usize::try_from(frames.due(MonotonicClock.now())).unwrap();
        let sent = link.transmit(due, |bytes| {
            let frame = frames.next();
            bytes[..frame.len()].copy_from_slice(frame);
            Some(TxFrame::whole(frame.len()))
        });
        if sent.is_err() {
            // The transfer has ended, and the TAP device is removed together with the network.
            // Sending on its interface therefore fails, and the flood ends.
            return;
        }
        thread::sleep(time::Duration::from_micros(500));
    }
}

/// Returns a frame with this payload for our MAC address.
fn ethernet(payload: &[u8]) -> Vec<u8> {
    let header = EthernetHeader {
        destination: MacAddress::new(MAC),
        source: MacAddress::new([2, 0, 0, 0, 0, 0x66]),
        tags: VlanTags::NONE,
        ether_type: EtherType::IPV4,
    };
    let mut frame = vec![0; EthernetHeader::LENGTH];
    header.emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

fn bytes(random: &mut Rand64, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.rand_u64().to_le_bytes()[0]).collect()
}

/// Returns a random address in 11.0.0.0/8. Our host reaches it through its default router.
fn address(random: &mut Rand64) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0b00_0000 | u32::try_from(random.rand_range(1..1 << 24)).unwrap())
}

fn random_frame(random: &mut Rand64) -> Vec<u8> {
    let length = usize::try_from(random.rand_range(46..1_500)).unwrap();
    ethernet(&bytes(random, length))
}

fn fragment(random: &mut Rand64) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LENGTH];
    let payload = bytes(random, 1_480);
    Ipv4Header::new(address(random), OURS, Protocol::UDP).emit(payload.len(), &mut packet);
    // Makes the packet a first fragment: sets the flag "more fragments", and the offset 0. The
    // other fragments of the datagram are never sent.
    packet[6..8].copy_from_slice(&[0x20, 0]);
    packet[10..12].fill(0);
    let checksum = Sum::of(&packet).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(&payload);
    ethernet(&packet)
}

fn syn(random: &mut Rand64) -> Vec<u8> {
    let options = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        ..TcpOptions::default()
    };
    segment(random, TcpFlags::SYN, 80, &options)
}

fn misdirected_syn(random: &mut Rand64) -> Vec<u8> {
    let mut frame = syn(random);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x55]);
    frame
}

fn stray_ack(random: &mut Rand64) -> Vec<u8> {
    segment(random, TcpFlags::ACK, 81, &TcpOptions::default())
}

fn segment(random: &mut Rand64, flags: TcpFlags, to: u16, options: &TcpOptions) -> Vec<u8> {
    let mut number = || u32::try_from(random.rand_u64() >> 32).unwrap();
    let (seq, ack) = (SeqNum::new(number()), SeqNum::new(number()));
    let source_port = u16::try_from(number() >> 17).unwrap() + 1_024;
    let header = TcpHeader {
        source_port,
        destination_port: to,
        seq,
        ack,
        flags,
        window: 64_000,
        ..TcpHeader::default()
    };
    let mut bytes = vec![0; TcpHeader::MAX_LENGTH];
    let options_length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
    header.emit(options_length, &mut bytes);
    bytes.truncate(TcpHeader::LENGTH + options_length);
    let ip = Ipv4Header::new(address(random), OURS, Protocol::TCP);
    let (pseudo, sum) = (ip.pseudo_header(bytes.len()), Sum::of(&bytes));
    TcpHeader::fill_checksum(&mut bytes, pseudo, sum);
    let mut packet = vec![0; Ipv4Header::LENGTH];
    ip.emit(bytes.len(), &mut packet);
    packet.extend_from_slice(&bytes);
    ethernet(&packet)
}
