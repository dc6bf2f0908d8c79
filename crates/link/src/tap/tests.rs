//! Devices of the kernel's, and pairs of sockets in their place.

use super::*;
use crate::Waiter;
use crate::kernel_interface::InterfaceError;
use crate::namespace::{isolated_test, skip_test};
use crate::testing::{
    arp_reply, lent_frames_leave_whole, next, packet_sent_back, send, sent_back,
    the_largest_frame_that_can_arrive_does_so_whole, what_arrives_bears_the_time_of_its_arrival,
    what_is_left_to_be_done_stands_in_front_of_the_frame,
    what_is_too_long_for_the_system_is_lost_and_counted,
};
use crate::virtio::LARGEST_FRAME;
use linerate_stack::{PartialChecksum, RxChecksum};
use std::net::{Ipv4Addr, UdpSocket};
use std::num::NonZeroU16;
use std::os::unix::net::UnixDatagram;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Without offloads: what the tests send back is what they have received.
fn plain() -> TapConfig {
    TapConfig { offloads: false, ..TapConfig::default() }
}

/// A device of the kernel's, where the machine has any.
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

#[test]
fn the_kernel_sends_a_flow_to_the_queue_that_it_came_from() {
    isolated_test(|| {
        if open(&plain()).is_none() {
            return;
        }
        let mut queues =
            Tap::open_queues(&TapConfig { name: "many%d".to_owned(), ..plain() }, 4).unwrap();
        queues[0].interface.disable_ipv6().unwrap();
        bring_up(&queues[0]);
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        let question = |queues: &mut [Tap]| {
            socket.send_to(b"to whichever queue", (OURS, 7)).unwrap();
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
        let (_, request) = question(&mut queues);
        send(&mut queues[1], &[arp_reply(&request, OURS, OUR_MAC)]).unwrap();
        let (mut first, mut frame) = (0, Vec::new());
        while frame.get(12..14) != Some(&[8, 0]) {
            // What waited for the answer comes by itself.
            for (number, queue) in queues.iter_mut().enumerate() {
                queue
                    .receive(1, |arrived| (first, frame) = (number, arrived.bytes.to_vec()))
                    .unwrap();
            }
        }
        for other in (0..4).filter(|&other| other != first) {
            send(&mut queues[other], [sent_back(&frame)]).unwrap();
            socket.recv(&mut [0; 64]).unwrap();
            assert_eq!(question(&mut queues).0, other);
        }
    });
}

#[test]
fn no_queue_and_too_many_are_refused() {
    assert_eq!(Tap::open_queues(&plain(), 0).unwrap_err(), TapError::Queues(0));
    assert!(Tap::open_queues(&plain(), 257).unwrap_err().to_string().contains("1 to 256"));
}

#[test]
fn the_kernel_s_frames_arrive_and_ours_arrive_at_the_kernel() {
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
fn over_tun_frames_begin_with_the_packet() {
    isolated_test(|| {
        let config = TapConfig { medium: Medium::Ip, mtu: 1_300, ..plain() };
        let Some(mut tun) = open(&config) else { return };
        bring_up(&tun);
        assert_eq!(tun.interface.state().unwrap().mtu, Bytes::new(1_300));
        let name = tun.interface.name().to_owned();
        assert_eq!(tun.interface.station(), Err(InterfaceError::NoEthernet(name)));
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.send_to(&[7; 1_272], (OURS, 7)).unwrap();
        let packet = next(&mut tun);
        assert_eq!((packet[0], packet.len()), (0x45, 1_300));
        assert_eq!(send(&mut tun, &[packet_sent_back(&packet)]), Ok(1));
        assert_eq!(socket.recv_from(&mut [0; 1_500]).unwrap().0, 1_272);
    });
}

#[test]
fn as_many_frames_wait_to_be_received_as_the_queue_of_the_interface_holds() {
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
fn an_interface_that_was_taken_down_or_removed_is_a_link_that_is_down() {
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
fn a_name_that_is_taken_is_told_from_one_that_is_no_name() {
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
fn a_frame_whose_header_says_what_cannot_be_is_dropped_and_counted() {
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
    assert_eq!(received, Ok(7), "each was work");
    assert_eq!(
        seen,
        [(60, RxChecksum::Unverified, None), (65_000, RxChecksum::Partial(place), Some(5))]
    );
    assert_eq!(tap.malformed(), 5);
}

#[test]
fn what_is_lent_leaves_behind_what_was_written_also_if_it_has_to_wait() {
    lent_frames_leave_whole(|ours| {
        Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
    });
}

#[test]
fn a_frame_that_is_too_long_for_the_system_is_lost_and_counted_and_those_behind_it_leave() {
    let config = TapConfig { mtu: 9_000, ..TapConfig::default() };
    what_is_too_long_for_the_system_is_lost_and_counted(
        |ours| Tap::over(ours, KernelInterface::loopback().unwrap(), &config),
        Tap::refused,
    );
}

#[test]
fn what_is_left_to_the_kernel_is_said_in_front_of_the_frame() {
    what_is_left_to_be_done_stands_in_front_of_the_frame(|ours| {
        Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
    });
}

#[test]
fn with_offloads_the_kernel_leaves_its_checksums_to_us() {
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
fn the_largest_frame_arrives_whole() {
    the_largest_frame_that_can_arrive_does_so_whole(|ours| {
        Tap::over(ours, KernelInterface::loopback().unwrap(), &TapConfig::default())
    });
}

#[test]
fn a_frame_that_is_longer_than_any_can_be_is_cut_and_harms_no_other() {
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
fn a_frame_bears_the_time_of_its_arrival_with_offloads_and_without() {
    for config in [plain(), TapConfig::default()] {
        what_arrives_bears_the_time_of_its_arrival(|ours| {
            Tap::over(ours, KernelInterface::loopback().unwrap(), &config)
        });
    }
}

#[test]
fn a_frame_for_which_the_system_has_no_room_waits_and_none_is_lost_or_sent_twice() {
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
    assert_eq!(tap.transmit(100, |_| panic!("one frame waits already")), Ok(0));
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
fn frames_that_are_read_together_arrive_in_their_order_each_as_it_was_and_no_more_than_are_wanted()
{
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut tap = Tap::over(ours.into(), KernelInterface::loopback().unwrap(), &plain());
    let frame = |number: u8| {
        vec![number; if number == 3 { LARGEST_FRAME } else { 60 + usize::from(number) }]
    };
    for budget in [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 100] {
        (0..9).for_each(|number| {
            assert_eq!(theirs.send(&frame(number)).unwrap(), frame(number).len())
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
