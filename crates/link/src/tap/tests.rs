//! Tests with TAP and TUN devices of the kernel, or with socket pairs in place of a device.

use super::*;
use crate::Waiter;
use crate::kernel_interface::InterfaceError;
use crate::namespace::{isolated_test, skip_test};
use crate::testing::{
    arp_reply, check_borrowed_data_is_sent_whole, check_frames_are_stamped_on_arrival,
    check_offloads_are_described, check_the_largest_frame_is_received,
    check_too_long_frames_are_counted, next, packet_sent_back, send, sent_back,
};
use crate::virtio::LARGEST_FRAME;
use linerate_stack::{PartialChecksum, RxChecksum};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU16;
use std::os::unix::net::UnixDatagram;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Returns a configuration without offloads. The frames that the kernel sends then have complete
/// checksums, so a test can send them back.
fn plain() -> TapConfig {
    TapConfig { offloads: false, ..TapConfig::default() }
}

/// Opens a TAP or TUN device. Returns `None`, and skips the test, if the machine cannot create one.
fn open(config: &TapConfig) -> Option<Tap> {
    match Tap::open(config) {
        Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
            skip_test(&error);
            None
        }
        opened => {
            let tap = opened.unwrap();
            tap.interface.disable_ipv6().unwrap();
            Some(tap)
        }
    }
}

fn bring_up(tap: &Tap) {
    tap.interface.add_address(KERNEL, 24).unwrap();
    tap.interface.set_up().unwrap();
}

/// Opens a TUN device with several queues, and brings it up. Returns `None`, and skips the test, if
/// the machine cannot create one.
fn open_steered() -> Option<SteeredTap> {
    open(&plain())?;
    let config = TapConfig { name: "steered%d".to_owned(), medium: Medium::Ip, ..plain() };
    let tap = SteeredTap::open(&config).unwrap();
    tap.first().interface.disable_ipv6().unwrap();
    bring_up(tap.first());
    Some(tap)
}

/// Returns a function that sends 64 datagrams to the host, each from another socket of the kernel.
fn datagrams_of_64_flows() -> impl Fn() {
    let sockets: Vec<_> = (0..64).map(|_| UdpSocket::bind((KERNEL, 0)).unwrap()).collect();
    move || sockets.iter().for_each(|socket| drop(socket.send_to(b"ask", (OURS, 7))))
}

#[test]
fn answered_flows_are_on_the_first_queue_of_a_steered_device() {
    isolated_test(|| {
        let Some(mut tap) = open_steered() else { return };
        let send_all = datagrams_of_64_flows();
        let receive = |link: &mut Tap| {
            let mut packets = Vec::new();
            link.receive(100, |frame| packets.push(frame.bytes.to_vec())).unwrap();
            packets
        };
        send_all();
        assert!(receive(tap.first_mut()).len() < 64, "other flows are on all queues");
        let mut packets = Vec::new();
        send_all();
        while tap.receive(8, |frame| packets.push(frame.bytes.to_vec())).unwrap() > 0 {}
        // Answers each datagram by exchanging its addresses and ports. That does not change the
        // sums, so the checksums stay right.
        for mut packet in packets {
            let (source, destination) = (packet[12..16].to_vec(), packet[16..20].to_vec());
            packet[12..16].copy_from_slice(&destination);
            packet[16..20].copy_from_slice(&source);
            packet[20..24].rotate_left(2);
            send(&mut tap, &[packet]).unwrap();
        }
        send_all();
        assert_eq!(receive(tap.first_mut()).len(), 64);
    });
}

#[test]
fn a_steered_device_leaves_new_flows_unread_while_it_holds_them() {
    isolated_test(|| {
        let Some(mut tap) = open_steered() else { return };
        let received = |tap: &mut SteeredTap| {
            let mut count = 0;
            while tap.receive(8, |_| count += 1).unwrap() > 0 {}
            count
        };
        let has_others = |tap: &SteeredTap| {
            let wakeup = tap.wakeup_fd().unwrap();
            let mut polled = [PollFd::new(&wakeup, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
        };
        let send_all = datagrams_of_64_flows();
        tap.hold_new_flows(true);
        send_all();
        let of_first = received(&mut tap);
        assert!(of_first < 64 && !has_others(&tap), "{of_first}");
        tap.hold_new_flows(false);
        assert!(has_others(&tap));
        assert_eq!(of_first + received(&mut tap), 64);
    });
}

#[test]
fn the_other_queues_of_a_steered_device_are_read_in_turn() {
    const TO_EACH: usize = 8;
    let (ends, queues): (Vec<_>, Vec<_>) = (0..4)
        .map(|_| {
            let (ours, theirs) = UnixDatagram::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            (theirs, Tap::over(ours.into(), KernelInterface::loopback().unwrap(), &plain()))
        })
        .unzip();
    let mut tap = SteeredTap::over(queues).unwrap();
    for (number, end) in (0..).zip(&ends) {
        (0..TO_EACH).for_each(|_| assert_eq!(end.send(&[number; 60]).unwrap(), 60));
    }
    let mut next = |budget| {
        let mut seen = Vec::new();
        let received = tap.receive(budget, |frame| seen.push(frame.bytes[0])).unwrap();
        assert_eq!(received, seen.len());
        seen
    };
    // One frame in eight may come from the other queues while the first has frames.
    assert_eq!(next(8), [0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(next(3), [0, 2, 2]);
    assert_eq!(next(5), [3, 3, 3, 3, 3], "the queue that was read least recently");
    assert_eq!(next(2), [1, 1]);
    let rest = next(100);
    let count = |queue| rest.iter().filter(|&&number| number == queue).count();
    assert_eq!([1, 2, 3].map(count), [TO_EACH - 3, TO_EACH - 2, TO_EACH - 5]);
    assert_eq!(next(100), []);
}

#[test]
fn the_kernel_sends_a_flow_to_the_queue_of_its_last_frame() {
    isolated_test(|| {
        if open(&plain()).is_none() {
            return;
        }
        let mut queues =
            Tap::open_queues(&TapConfig { name: "many%d".to_owned(), ..plain() }, 4).unwrap();
        queues[0].interface.disable_ipv6().unwrap();
        bring_up(&queues[0]);
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        let next_datagram = |queues: &mut [Tap]| {
            socket.send_to(b"to any queue", (OURS, 7)).unwrap();
            loop {
                for (number, queue) in queues.iter_mut().enumerate() {
                    let mut frame = None;
                    queue.receive(1, |arrived| frame = Some(arrived.bytes.to_vec())).unwrap();
                    if let Some(frame) = frame {
                        return (number, frame);
                    }
                }
            }
        };
        let (_, request) = next_datagram(&mut queues);
        send(&mut queues[1], &[arp_reply(&request, OURS, OUR_MAC)]).unwrap();
        let (mut first, mut frame) = (0, Vec::new());
        while frame.get(12..14) != Some(&[8, 0]) {
            // The kernel sends the datagram only now, because it needed the ARP reply. It may
            // choose any queue, so all queues are read.
            for (number, queue) in queues.iter_mut().enumerate() {
                queue
                    .receive(1, |arrived| (first, frame) = (number, arrived.bytes.to_vec()))
                    .unwrap();
            }
        }
        for other in (0..4).filter(|&other| other != first) {
            send(&mut queues[other], [sent_back(&frame)]).unwrap();
            socket.recv(&mut [0; 64]).unwrap();
            assert_eq!(next_datagram(&mut queues).0, other);
        }
    });
}

#[test]
fn zero_queues_and_too_many_are_refused() {
    assert_eq!(Tap::open_queues(&plain(), 0).unwrap_err(), TapError::Queues(0));
    assert!(Tap::open_queues(&plain(), 257).unwrap_err().to_string().contains("1 to 256"));
}

#[test]
fn frames_are_exchanged_with_the_kernel() {
    isolated_test(|| {
        let Some(mut tap) = open(&plain()) else { return };
        bring_up(&tap);
        assert_eq!(tap.interface().name(), "lr0");
        let mac = tap.interface.state().unwrap().mac.unwrap();
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.send_to(b"over a TAP", (OURS, 7)).unwrap();
        let request = next(&mut tap);
        assert_eq!(send(&mut tap, &[arp_reply(&request, OURS, OUR_MAC)]), Ok(1));
        let frame = next(&mut tap);
        assert_eq!((&frame[..6], &frame[6..12]), (&OUR_MAC[..], &mac[..]));
        assert_eq!(send(&mut tap, [sent_back(&frame)]), Ok(1));
        let mut echo = [0; 64];
        let (length, from) = socket.recv_from(&mut echo).unwrap();
        assert_eq!((&echo[..length], from), (&b"over a TAP"[..], (OURS, 7).into()));
    });
}

#[test]
fn tun_frames_begin_with_the_ip_header() {
    isolated_test(|| {
        let config = TapConfig { medium: Medium::Ip, mtu: 1_300, ..plain() };
        let Some(mut tun) = open(&config) else { return };
        bring_up(&tun);
        assert_eq!(tun.interface.state().unwrap().mtu, Bytes::new(1_300));
        let name = tun.interface.name().to_owned();
        assert_eq!(tun.interface.mac_address(), Err(InterfaceError::NoEthernet(name)));
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.send_to(&[7; 1_272], (OURS, 7)).unwrap();
        let packet = next(&mut tun);
        assert_eq!((packet[0], packet.len()), (0x45, 1_300));
        assert_eq!(send(&mut tun, &[packet_sent_back(&packet)]), Ok(1));
        assert_eq!(socket.recv_from(&mut [0; 1_500]).unwrap().0, 1_272);
    });
}

#[test]
fn the_queue_of_the_interface_holds_the_given_number_of_frames() {
    isolated_test(|| {
        let Some(mut tap) = open(&plain()) else { return };
        bring_up(&tap);
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.set_broadcast(true).unwrap();
        for length in [40, 2_000] {
            tap.interface.set_queue_length(length).unwrap();
            for _ in 0..length {
                socket.send_to(b"to all", (Ipv4Addr::new(10, 0, 0, 255), 9)).unwrap();
            }
            assert_eq!(tap.receive(10_000, |_| ()), Ok(length as usize));
        }
    });
}

#[test]
fn the_link_is_down_with_its_interface_down_or_deleted() {
    isolated_test(|| {
        let Some(mut tap) = open(&plain()) else { return };
        assert_eq!(send(&mut tap, &[vec![0; 60]]), Err(LinkError::Down));
        assert_eq!(tap.receive(1, |_| ()), Ok(0));
        bring_up(&tap);
        assert_eq!(send(&mut tap, &[vec![0; 60]]), Ok(1));
        tap.interface.clone().delete().unwrap();
        assert!(Waiter::new().unwrap().wait(&mut tap, Instant::NEVER).unwrap().link);
        assert_eq!(tap.receive(1, |_| ()), Err(LinkError::Down));
    });
}

#[test]
fn used_names_and_invalid_names_are_distinguished() {
    isolated_test(|| {
        let config = |name: &str| TapConfig { name: name.to_owned(), ..TapConfig::default() };
        let Some(tap) = open(&config("taken")) else { return };
        let refusal = |name| Tap::open(&config(name)).map(drop).unwrap_err();
        assert_eq!(refusal("taken"), TapError::Busy { name: "taken".to_owned() });
        assert_eq!(refusal("lo"), TapError::Kind { name: "lo".to_owned() });
        assert!(matches!(refusal("a b"), TapError::Interface(InterfaceError::Name(_))));
        drop(tap);
        Tap::open(&config("taken")).unwrap();
    });
}

#[test]
fn frames_with_invalid_headers_are_dropped_and_counted() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let interface = KernelInterface::loopback().unwrap();
    let mut tap = Tap::over(ours.into(), interface, &TapConfig::default());
    let send = |header: [u8; 10], length: usize| {
        let frame = [&header[..], &vec![9; length]].concat();
        theirs.send(&frame).unwrap();
    };
    theirs.send(&[0; 9]).unwrap();
    theirs.send(&[]).unwrap();
    send([1, 0, 0, 0, 0, 0, 60, 0, 0, 0], 60);
    send([1, 1, 0, 0, 0, 0, 34, 0, 16, 0], 60);
    send([1, 3, 0, 0, 1, 0, 34, 0, 16, 0], 60);
    send([0; 10], 60);
    send([1, 1, 54, 0, 5, 0, 34, 0, 16, 0], 65_000);
    let mut seen = Vec::new();
    let received = tap.receive(100, |frame| {
        seen.push((frame.bytes.len(), frame.checksum, frame.segment.map(NonZeroU16::get)));
    });
    let place = PartialChecksum { start: 34, offset: 16 };
    assert_eq!(received, Ok(7), "dropped frames count as received");
    assert_eq!(
        seen,
        [(60, RxChecksum::Unverified, None), (65_000, RxChecksum::Partial(place), Some(5))]
    );
    assert_eq!(tap.malformed(), 5);
}

#[test]
fn borrowed_data_is_sent_after_the_headers_even_if_it_must_wait() {
    check_borrowed_data_is_sent_whole(|ours| {
        Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
    });
}

#[test]
fn too_long_frames_are_counted_and_later_ones_are_sent() {
    let config = TapConfig { mtu: 9_000, ..TapConfig::default() };
    check_too_long_frames_are_counted(
        |ours| Tap::over(ours, KernelInterface::loopback().unwrap(), &config),
        Tap::refused,
    );
}

#[test]
fn offloads_are_described_before_the_frame() {
    check_offloads_are_described(|ours| {
        Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
    });
}

#[test]
fn with_offloads_frames_from_the_kernel_have_partial_checksums() {
    isolated_test(|| {
        let Some(mut tap) = open(&TapConfig::default()) else { return };
        bring_up(&tap);
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.send_to(b"not summed", (OURS, 7)).unwrap();
        let request = next(&mut tap);
        send(&mut tap, &[arp_reply(&request, OURS, OUR_MAC)]).unwrap();
        let (mut waiter, mut checksum) = (Waiter::new().unwrap(), None);
        while checksum.is_none() {
            waiter.wait(&mut tap, Instant::NEVER).unwrap();
            tap.receive(1, |arrived| checksum = Some(arrived.checksum)).unwrap();
        }
        assert_eq!(checksum, Some(RxChecksum::Partial(PartialChecksum { start: 34, offset: 6 })));
    });
}

#[test]
fn the_largest_frame_is_received() {
    check_the_largest_frame_is_received(|ours| {
        Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
    });
}

#[test]
fn an_oversized_frame_is_truncated_and_affects_no_other() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut tap = Tap::over(ours.into(), KernelInterface::loopback().unwrap(), &plain());
    for (number, length) in [(1, 60), (2, LARGEST_FRAME + 5_000), (3, 60)] {
        theirs.send(&vec![number; length]).unwrap();
    }
    let mut seen = Vec::new();
    tap.receive(9, |frame| seen.push(frame.bytes.to_vec())).unwrap();
    assert!(seen == [vec![1; 60], vec![2; LARGEST_FRAME], vec![3; 60]]);
}

#[test]
fn frames_are_stamped_on_arrival_with_and_without_offloads() {
    for config in [plain(), TapConfig::default()] {
        check_frames_are_stamped_on_arrival(|ours| {
            Tap::over(ours, KernelInterface::loopback().unwrap(), &config)
        });
    }
}

#[test]
fn a_frame_without_room_waits_and_is_sent_once() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let interface = KernelInterface::loopback().unwrap();
    let mut tap = Tap::over(ours.into(), interface, &plain());
    let mut next = 0_u32;
    let mut fill = |bytes: &mut [u8]| {
        bytes[..4].copy_from_slice(&next.to_be_bytes());
        next += 1;
        Some(TxFrame::whole(60))
    };
    let sent = tap.transmit(100_000, &mut fill).unwrap();
    assert!(sent < 100_000 && tap.wants_room());
    assert_eq!(tap.transmit(100, |_| panic!("a frame is waiting already")), Ok(0));
    let mut frames = Vec::new();
    let mut drain = || {
        let mut bytes = [0; 100];
        while let Ok(length) = theirs.recv(&mut bytes) {
            assert_eq!(length, 60);
            frames.push(u32::from_be_bytes(bytes[..4].try_into().unwrap()));
        }
    };
    drain();
    assert!(Waiter::new().unwrap().wait(&mut tap, Instant::NEVER).unwrap().link, "there is room");
    assert_eq!(tap.transmit(2, &mut fill), Ok(2));
    assert!(!tap.wants_room());
    drain();
    let expected: Vec<_> = (0..u32::try_from(sent).unwrap() + 2).collect();
    assert_eq!(frames, expected);
}

#[test]
fn a_batch_of_frames_is_in_order_unchanged_and_within_the_budget() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut tap = Tap::over(ours.into(), KernelInterface::loopback().unwrap(), &plain());
    let frame = |number: u8| {
        vec![number; if number == 3 { LARGEST_FRAME } else { 60 + usize::from(number) }]
    };
    for budget in [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 100] {
        (0..9).for_each(|number| {
            assert_eq!(theirs.send(&frame(number)).unwrap(), frame(number).len());
        });
        let mut seen = Vec::new();
        for turn in 0.. {
            let received =
                tap.receive(budget, |arrived| seen.push(arrived.bytes.to_vec())).unwrap();
            assert_eq!(received, budget.min(9 - budget * turn));
            if received < budget {
                break;
            }
        }
        assert_eq!(seen, (0..9).map(frame).collect::<Vec<_>>());
    }
}
