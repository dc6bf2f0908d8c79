//! Compares the goodput of our sender with the goodput of the kernel's sender. Both senders use the
//! same congestion control, and send over the same impaired path to a receiver in the kernel. The
//! two senders transfer alternately. The comparison takes minutes and measures on a real clock, so
//! it runs only on request, and it asserts nothing:
//!
//! ```text
//! LINERATE_AGAINST_KERNEL=6 cargo test --release -p linerate-sockets --test reality against -- \
//!     --nocapture
//! ```
//!
//! The value 6 of `LINERATE_AGAINST_KERNEL` is the number of transfers by each sender, for each
//! combination of congestion control, round-trip time and impairment.
//! `LINERATE_AGAINST_CONTROL=bbr` and `LINERATE_AGAINST_RTT=10ms` restrict the combinations. The
//! kernel's sender has its own network namespace. This process forwards the frames between the
//! sender's TAP device and the receiver's. One `Impair` at the receiver's device sets the delay,
//! the loss and the rate of the path for both senders.

use crate::kernel::{KERNEL, OURS, network_with, open_tap};
use crate::setting;
use linerate_link::kernel_tcp::TcpInfo;
use linerate_link::namespace::{Network, isolated_test};
use linerate_link::{Impair, KernelInterface, Readiness, Tap, TapConfig};
use linerate_stack::{Link, TxFrame};
use linerate_units::{Clock, Duration};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{self, AddressFamily, SocketType, sockopt};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread, time};

/// The congestion controls to compare. Linux 6.18 has BBRv1 under the name `bbr`.
const CONTROLS: [&str; 2] = ["cubic", "bbr"];
const ROUND_TRIPS: [&str; 3] = ["100us", "10ms", "100ms"];
/// The impairments to compare, which apply to frames in both directions. A reordered frame is
/// overtaken by ten others.
const IMPAIRMENTS: [&str; 6] = [
    "loss=0%",
    "loss=0.1%",
    "loss=1%",
    "loss=1%,loss-burst=5",
    "loss=5%",
    "reorder=2%,reorder-by=10,reorder-within=4ms",
];

/// The bottleneck of the path, and the queue in front of it.
const LINE: &str = "rate=100Mb/s,queue=256KiB";

/// Duration of a transfer.
const SPAN: time::Duration = time::Duration::from_secs(3);

/// The result of a transfer: bytes per second, and counters of the sender.
struct Outcome {
    goodput: f64,
    counters: String,
}

#[test]
fn compare_our_goodput_with_the_kernels() {
    let repeats = setting::<u64>("LINERATE_AGAINST_KERNEL", "0");
    if repeats == 0 {
        return;
    }
    isolated_test(|| {
        // By default the kernel caches the metrics of a connection, such as its slow start
        // threshold, and the next connection starts with them. So the transfers would influence
        // each other.
        fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1").unwrap();
        let repeats = setting::<u64>("LINERATE_AGAINST_KERNEL", "0");
        println!(
            "{:>6} {:>6} {:<44} {:>12} {:>12}  ours / kernel",
            "", "RTT", "impairment", "ours B/s", "kernel B/s"
        );
        for control in chosen("LINERATE_AGAINST_CONTROL", &CONTROLS) {
            if !kernel_has(control) {
                println!("{control:>6}  this kernel does not have it");
                continue;
            }
            for round_trip in chosen("LINERATE_AGAINST_RTT", &ROUND_TRIPS) {
                for impairment in IMPAIRMENTS {
                    compare(control, round_trip, impairment, repeats);
                }
            }
        }
    });
}

/// Returns the entries of `all` to compare: the one that the environment variable names, or all
/// entries if the variable is unset.
fn chosen<'a>(variable: &str, all: &[&'a str]) -> Vec<&'a str> {
    let name = setting::<String>(variable, "");
    all.iter().copied().filter(|&one| name.is_empty() || name == one).collect()
}

fn kernel_has(control: &str) -> bool {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    available.unwrap().split_whitespace().any(|name| name == control)
}

/// Makes `repeats` pairs of transfers, one by each sender. Prints the median, the minimum and the
/// maximum of the ratios of our goodput to the kernel's in a pair. With six pairs, the true median
/// lies between minimum and maximum with a probability of 97 %.
fn compare(control: &str, round_trip: &str, impairment: &str, repeats: u64) {
    let delay = Duration::from_nanos(round_trip.parse::<Duration>().unwrap().as_nanos() / 2);
    let path = format!("delay={}us,{impairment},{LINE}", delay.as_micros());
    let (mut ratios, mut ours, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for seed in 0..repeats {
        // In even pairs our host sends first, in odd pairs the kernel. So neither has an advantage
        // if the machine becomes faster or slower during the series.
        let (mine, theirs) = if seed % 2 == 0 {
            let mine = we_send(control, &path, seed);
            (mine, the_kernel_sends(control, &path, seed))
        } else {
            let theirs = the_kernel_sends(control, &path, seed);
            (we_send(control, &path, seed), theirs)
        };
        ratios.push(mine.goodput / theirs.goodput);
        ours.push(mine.goodput);
        kernels.push(theirs.goodput);
        last = Some((mine.counters, theirs.counters));
    }
    [&mut ratios, &mut ours, &mut kernels]
        .into_iter()
        .for_each(|sample| sample.sort_by(f64::total_cmp));
    let middle = |sample: &[f64]| (sample[sample.len() / 2] + sample[(sample.len() - 1) / 2]) / 2.0;
    let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
    println!(
        "{control:>6} {round_trip:>6} {impairment:<44} {:>12.0} {:>12.0}  {:.2} \
         [{least:.2} .. {most:.2}]",
        middle(&ours),
        middle(&kernels),
        middle(&ratios)
    );
    if let Some((mine, theirs)) = last.filter(|_| middle(&ratios) < 0.95) {
        println!("       ours:   {mine}\n       kernel: {theirs}");
    }
}

fn we_send(control: &str, path: &str, seed: u64) -> Outcome {
    let impaired = |tap| Impair::new(tap, path.parse().unwrap(), seed);
    let (net, interface) = network_with(impaired, |config| {
        config.tcp.send_buffer = (4 << 20).into();
        config.tcp.congestion = control.parse().unwrap();
    })
    .expect("a device");
    let listener = TcpListener::bind((KERNEL, 0)).unwrap();
    let start = time::Instant::now();
    let ours = net.connect(listener.local_addr().unwrap()).unwrap();
    let goodput = thread::scope(|scope| {
        scope.spawn(|| write_until_closed(&ours));
        read_for_a_while(&listener.accept().unwrap().0, start)
    });
    let (counted, info) = (ours.statistics().unwrap(), ours.tcp_info().unwrap());
    let counters = format!(
        "retransmitted {}, fast recoveries {}, undone {}, duplicates {}, timeouts {}, cwnd {}, \
         srtt {:?}",
        counted.retransmitted_segments,
        counted.fast_retransmissions,
        counted.spurious_recoveries,
        counted.duplicates_reported,
        counted.retransmission_timeouts,
        info.congestion_window,
        info.smoothed_round_trip
    );
    drop((ours, net));
    // Dropping `interface`, the last owner of the device, removes the device. The next transfer can
    // then create a device with the same name.
    drop(interface);
    Outcome { goodput, counters }
}

fn the_kernel_sends(control: &str, path: &str, seed: u64) -> Outcome {
    let tap = open_tap().expect("a device");
    let mut near = Impair::new(tap, path.parse().unwrap(), seed);
    let network = Network::new().unwrap();
    let mut far = network.run(|| {
        let tap = Tap::open(&TapConfig {
            name: "far%d".to_owned(),
            offloads: false,
            ..TapConfig::default()
        })
        .unwrap();
        let interface = KernelInterface::named(tap.interface().name()).unwrap();
        interface.disable_ipv6().unwrap();
        interface.add_address(OURS, 24).unwrap();
        interface.set_up().unwrap();
        fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1").unwrap();
        tap
    });
    let listener = TcpListener::bind((KERNEL, 0)).unwrap();
    let (address, over) = (listener.local_addr().unwrap(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| carry(&mut near, &mut far, &over));
        let start = time::Instant::now();
        let control = control.to_owned();
        let sender = network.run(move || connect_with(&control, address));
        let writer = sender.try_clone().unwrap();
        let goodput = thread::scope(|scope| {
            scope.spawn(|| write_until_closed(&writer));
            read_for_a_while(&listener.accept().unwrap().0, start)
        });
        let info = TcpInfo::of(&sender).unwrap();
        let field = |name| info.field(name).unwrap_or_default();
        let counters = format!(
            "retransmitted {}, lost now {}, cwnd {} segments, srtt {} us",
            field("total_retrans"),
            field("lost"),
            field("snd_cwnd"),
            field("rtt")
        );
        over.store(true, Ordering::Relaxed);
        Outcome { goodput, counters }
    })
}

/// Connects a socket of the kernel, with this congestion control. It is set before the handshake,
/// because the default of the machine may be BBR. A connection that starts with BBR stays paced
/// after a change to another congestion control.
fn connect_with(control: &str, address: SocketAddr) -> TcpStream {
    let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_tcp_congestion(&socket, control).unwrap();
    net::connect(&socket, &address).unwrap();
    TcpStream::from(socket)
}

/// Writes zeros until the connection is closed.
fn write_until_closed(mut to: impl Write) {
    while to.write_all(&[0; 60_000]).is_ok() {}
}

/// Reads until [`SPAN`] has passed since `start`, when the connection was requested. Returns bytes
/// per second.
fn read_for_a_while(mut from: &TcpStream, start: time::Instant) -> f64 {
    from.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
    let (mut piece, mut read) = (vec![0; 1 << 18], 0_u64);
    while start.elapsed() < SPAN {
        match from.read(&mut piece) {
            Ok(count) => read += count as u64,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "the figure is rounded for display")]
    let goodput = read as f64 / start.elapsed().as_secs_f64();
    // The sender is still sending, so there may be unread data. When the caller drops the stream,
    // the unread data causes a reset, which stops the sender.
    goodput
}

/// Forwards frames between the impaired device of the receiver and the device of the sender, until
/// `over` is set.
fn carry(near: &mut Impair<Tap>, far: &mut Tap, over: &AtomicBool) {
    let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
    while !over.load(Ordering::Relaxed) {
        far.receive(64, |frame| there.push_back(frame.bytes.to_vec())).unwrap();
        near.receive(64, |frame| back.push_back(frame.bytes.to_vec())).unwrap();
        near.transmit(64, |bytes| fill(&mut there, bytes)).unwrap();
        far.transmit(64, |bytes| fill(&mut back, bytes)).unwrap();
        if there.is_empty() && back.is_empty() {
            wait(near, far);
        }
    }
}

fn fill(queue: &mut VecDeque<Vec<u8>>, bytes: &mut [u8]) -> Option<TxFrame> {
    let frame = queue.pop_front()?;
    bytes[..frame.len()].copy_from_slice(&frame);
    Some(TxFrame::whole(frame.len()))
}

/// Waits until a device has a frame or a delayed frame is due, at most 20 ms. The caller then
/// checks whether the transfer has ended.
fn wait(near: &Impair<Tap>, far: &Tap) {
    let now = linerate_link::MonotonicClock.now();
    let left = near.next_deadline().since(now).min(Duration::from_millis(20)).as_nanos();
    let mut fds = [
        PollFd::from_borrowed_fd(near.fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(far.fd(), PollFlags::IN),
    ];
    let time = Timespec { tv_sec: 0, tv_nsec: i64::try_from(left).unwrap() };
    // `poll` fails if a signal interrupts it. The error is ignored, because the caller reads from
    // both devices after every wait.
    let _ = poll(&mut fds, Some(&time));
}
