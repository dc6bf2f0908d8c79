//! One end of a virtual cable is ours, at the other is the kernel.

use super::*;
use crate::Waiter;
use crate::namespace::{Network, isolated_test};
use crate::testing::{
    Lengths, arp_reply, lent_frames_leave_whole, next, send, sent_back,
    the_largest_frame_that_can_arrive_does_so_whole, what_arrives_bears_the_time_of_its_arrival,
    what_is_left_to_be_done_stands_in_front_of_the_frame,
    what_is_too_long_for_the_system_is_lost_and_counted,
};
use linerate_stack::RxChecksum;
use linerate_units::Instant;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// A cable whose other end, with the kernel's address, is in another network.
fn cable(config: &PacketConfig) -> (PacketLink, Network) {
    let (_, network) = Network::behind_cable(["near", "far"], KERNEL).unwrap();
    (PacketLink::open(config).unwrap(), network)
}

fn config() -> PacketConfig {
    PacketConfig { offloads: false, ..PacketConfig::new("near") }
}

fn ask(network: &Network) -> UdpSocket {
    network.run(|| {
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.send_to(b"over a cable", (OURS, 7)).unwrap();
        socket
    })
}

#[test]
fn the_kernel_s_frames_arrive_and_ours_arrive_at_the_kernel() {
    isolated_test(|| {
        for wanted in [None, Some([2, 0, 0, 0, 0, 9])] {
            let (mut link, network) = cable(&PacketConfig { mac: wanted, ..config() });
            let mac = link.mac();
            assert_eq!(mac, wanted.unwrap_or_else(|| link.interface().station().unwrap()));
            let socket = ask(&network);
            let request = next(&mut link);
            assert_eq!(send(&mut link, &[arp_reply(&request, OURS, mac)]), Ok(1));
            let datagram = next(&mut link);
            assert_eq!((&datagram[..6], &datagram[42..]), (&mac[..], &b"over a cable"[..]));
            // The kernel has left its sum to us, because the cable has offloads and we have none.
            let mut back = sent_back(&datagram);
            back[40..42].fill(0);
            assert_eq!(send(&mut link, &[back]), Ok(1));
            let mut heard = [0; 20];
            assert_eq!(socket.recv(&mut heard).unwrap(), 12);
            assert_eq!((link.dropped(), link.refused(), link.malformed()), (0, 0, 0));
            link.interface().clone().delete().unwrap();
        }
    });
}

#[test]
fn a_checksum_that_the_kernel_has_left_out_is_told() {
    isolated_test(|| {
        let (mut link, network) = cable(&PacketConfig::new("near"));
        let capabilities = link.capabilities();
        assert_eq!((capabilities.mtu, capabilities.offloads.super_packet), (1_500, 65_535));
        let _socket = ask(&network);
        let (request, mac) = (next(&mut link), link.mac());
        send(&mut link, &[arp_reply(&request, OURS, mac)]).unwrap();
        let (mut waiter, mut checksum) = (Waiter::new().unwrap(), None);
        while checksum.is_none() {
            waiter.wait(&mut link, Instant::NEVER).unwrap();
            link.receive(1, |arrived| checksum = Some(arrived.checksum)).unwrap();
        }
        assert!(
            matches!(checksum, Some(RxChecksum::Partial(place)) if place.start == 34),
            "{checksum:?}"
        );
    });
}

#[test]
fn what_is_for_others_and_what_we_send_ourselves_is_not_seen() {
    isolated_test(|| {
        let (mut link, network) = cable(&config());
        let (mut other, mac) = (vec![0; 60], link.mac());
        other[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x77]);
        other[12..14].copy_from_slice(&[8, 0]);
        let mut ours = other.clone();
        ours[..6].copy_from_slice(&mac);
        let mut unknown = ours.clone();
        unknown[12..14].copy_from_slice(&[0x86, 0xdd]);
        let mut tagged = ours.clone();
        tagged[12..18].copy_from_slice(&[0x81, 0, 0, 5, 8, 0]);
        let mut last = ours.clone();
        last[59] = 9;
        network.run({
            let frames = [other.clone(), unknown, tagged, last.clone()];
            move || {
                let mut far =
                    PacketLink::open(&PacketConfig { offloads: false, ..PacketConfig::new("far") });
                assert_eq!(send(far.as_mut().unwrap(), &frames), Ok(4));
            }
        });
        assert_eq!(next(&mut link), last);
        send(&mut link, &[ours]).unwrap();
        assert_eq!(link.receive(64, |frame| panic!("{frame:?}")), Ok(0));
    });
}

#[test]
fn what_the_kernel_sends_out_there_itself_is_not_seen() {
    isolated_test(|| {
        let (mut link, _network) = cable(&config());
        let beside = Ipv4Addr::new(10, 0, 0, 3);
        link.interface().add_address(beside, 24).unwrap();
        let socket = UdpSocket::bind((beside, 0)).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.send_to(b"to all", (Ipv4Addr::new(10, 0, 0, 255), 9)).unwrap();
        assert_eq!(link.receive(64, |frame| panic!("{frame:?}")), Ok(0));
    });
}

#[test]
fn what_is_for_a_station_that_differs_from_ours_in_one_byte_is_not_seen() {
    isolated_test(|| {
        let (mut link, network) = cable(&config());
        let mut ours = vec![0; 60];
        ours[..6].copy_from_slice(&link.mac());
        ours[12..14].copy_from_slice(&[8, 0]);
        let others = (0..6).map(|at| {
            let mut other = ours.clone();
            // The lowest bit of the first byte would make it one for a group.
            other[at] ^= 0x10;
            other
        });
        let frames: Vec<_> = others.chain([ours.clone()]).collect();
        network.run(move || {
            let far = PacketConfig { offloads: false, ..PacketConfig::new("far") };
            assert_eq!(send(&mut PacketLink::open(&far).unwrap(), &frames), Ok(7));
        });
        assert_eq!(next(&mut link), ours);
        assert_eq!(link.receive(64, |frame| panic!("{frame:?}")), Ok(0));
    });
}

#[test]
fn frames_wait_in_a_wider_queue_than_the_usual_one_and_go_past_the_interface_s_if_that_is_wanted() {
    isolated_test(|| {
        for bypass_queue in [false, true] {
            let (link, _network) = cable(&PacketConfig { bypass_queue, ..config() });
            let usual = socket_option::get_integer(
                open_socket().unwrap(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUF,
            );
            let ours = socket_option::get_integer(&link.socket, libc::SOL_SOCKET, libc::SO_RCVBUF);
            assert!(ours.unwrap() > usual.unwrap());
            let bypass = socket_option::get_integer(
                &link.socket,
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
            );
            assert_eq!(bypass.unwrap(), i32::from(bypass_queue));
            link.interface().clone().delete().unwrap();
        }
    });
}

/// A link over one of two sockets of the kernel's UDP, each of which takes far more frames than one call.
fn over_loopback() -> (PacketLink, UdpSocket) {
    let [ours, theirs] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    ours.connect(theirs.local_addr().unwrap()).unwrap();
    theirs.connect(ours.local_addr().unwrap()).unwrap();
    let interface = KernelInterface::loopback().unwrap();
    (PacketLink::over(ours.into(), interface, [2; 6], 1_500, true), theirs)
}

#[test]
fn as_many_frames_are_received_as_are_wanted_and_there_however_many_calls_that_takes() {
    let (mut link, theirs) = over_loopback();
    for number in 0..100 {
        theirs.send(&[&[0; 10][..], &[number; 60]].concat()).unwrap();
    }
    let mut numbers = Vec::new();
    for (budget, expected) in [(0, 0), (7, 7), (70, 70), (70, 23)] {
        assert_eq!(link.receive(budget, |frame| numbers.push(frame.bytes[0])), Ok(expected));
    }
    assert!(numbers.into_iter().eq(0..100));
}

#[test]
fn as_many_frames_are_sent_as_were_asked_for_however_many_calls_that_takes() {
    for lent in [false, true] {
        let (mut link, theirs) = over_loopback();
        let mut lengths = Lengths(&[60; 100]);
        for (budget, expected) in [(0, 0), (7, 7), (70, 70), (70, 23)] {
            let sent = if lent {
                link.transmit_from(budget, &mut lengths)
            } else {
                link.transmit(budget, |frame| lengths.fill(frame))
            };
            assert_eq!(sent, Ok(expected));
            for _ in 0..expected {
                assert_eq!(theirs.recv(&mut [0; 100]).unwrap(), 70);
            }
        }
    }
}

#[test]
fn the_largest_frame_arrives_whole() {
    the_largest_frame_that_can_arrive_does_so_whole(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn more_frames_than_one_call_takes_arrive_in_their_order_and_what_is_too_much_is_counted() {
    const FRAMES: u16 = 100;
    isolated_test(|| {
        let (mut link, network) = cable(&config());
        let mac = link.mac();
        let send_to_us = move |count: u16, length: usize| {
            let mut far =
                PacketLink::open(&PacketConfig { offloads: false, ..PacketConfig::new("far") })
                    .unwrap();
            let mut number = 0_u16;
            while number < count {
                far.transmit(usize::MAX, |bytes| {
                    bytes[..length].fill(0);
                    bytes[..6].copy_from_slice(&mac);
                    bytes[12..14].copy_from_slice(&[8, 0]);
                    bytes[14..16].copy_from_slice(&number.to_be_bytes());
                    number += 1;
                    (number <= count).then_some(TxFrame::whole(length))
                })
                .unwrap();
            }
        };
        network.run(move || send_to_us(FRAMES, 60));
        let mut waiter = Waiter::new().unwrap();
        let mut numbers = Vec::new();
        while numbers.len() < usize::from(FRAMES) {
            waiter.wait(&mut link, Instant::NEVER).unwrap();
            link.receive(33, |frame| {
                numbers.push(u16::from_be_bytes([frame.bytes[14], frame.bytes[15]]))
            })
            .unwrap();
        }
        assert_eq!(numbers, (0..FRAMES).collect::<Vec<_>>());
        network.run(move || send_to_us(20_000, 1_500));
        let mut taken = 0;
        while let count @ 1.. = link.receive(64, |_| ()).unwrap() {
            taken += count as u64;
        }
        assert!(link.dropped() > 0);
        assert_eq!(taken + link.dropped(), 20_000);
    });
}

#[test]
fn an_interface_that_is_down_or_gone_is_a_link_that_is_down() {
    isolated_test(|| {
        let (mut link, _network) = cable(&config());
        link.interface().set_down().unwrap();
        assert_eq!(link.receive(1, |_| ()), Err(LinkError::Down));
        assert_eq!(send(&mut link, &[vec![0; 60]]), Err(LinkError::Down));
    });
}

#[test]
fn what_is_missing_is_said() {
    isolated_test(|| {
        let missing = PacketLink::open(&PacketConfig::new("nowhere")).unwrap_err();
        assert!(matches!(missing, PacketError::Interface(InterfaceError::Missing(_))), "{missing}");
    });
}

#[test]
fn what_is_lent_leaves_behind_what_was_written_among_frames_that_are_whole() {
    lent_frames_leave_whole(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn a_frame_that_is_too_long_for_the_system_is_lost_and_counted_and_those_behind_it_leave() {
    what_is_too_long_for_the_system_is_lost_and_counted(
        |ours| PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 9_000, true),
        PacketLink::refused,
    );
}

#[test]
fn what_is_left_to_the_kernel_is_said_in_front_of_the_frame() {
    what_is_left_to_be_done_stands_in_front_of_the_frame(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn a_frame_bears_the_time_of_its_arrival() {
    what_arrives_bears_the_time_of_its_arrival(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn a_frame_whose_header_says_what_cannot_be_is_dropped_and_counted_and_was_work_all_the_same() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut link =
        PacketLink::over(ours.into(), KernelInterface::loopback().unwrap(), [2; 6], 1_500, true);
    let sound = [0; 70];
    let mut beyond = sound;
    (beyond[0], beyond[6]) = (1, 60);
    for bytes in [&sound[..], &beyond, &[0; 9], &[], &sound] {
        theirs.send(bytes).unwrap();
    }
    let mut lengths = Vec::new();
    assert_eq!(link.receive(100, |frame| lengths.push(frame.bytes.len())), Ok(5));
    assert_eq!((lengths, link.malformed()), (vec![60, 60], 3));
}

#[test]
fn what_has_arrived_can_be_kept_and_is_not_written_over() {
    isolated_test(|| {
        let (mut link, network) = cable(&config());
        let socket = ask(&network);
        let (request, mac) = (next(&mut link), link.mac());
        send(&mut link, &[arp_reply(&request, OURS, mac)]).unwrap();
        drop(next(&mut link));
        for number in 0..100_u8 {
            socket.send_to(&[number; 600], (OURS, 7)).unwrap();
        }
        let (mut waiter, mut kept) = (Waiter::new().unwrap(), Vec::new());
        while kept.len() < 100 {
            waiter.wait(&mut link, Instant::NEVER).unwrap();
            link.receive(64, |frame| {
                kept.push((Arc::clone(frame.memory.unwrap()), frame.bytes.len()))
            })
            .unwrap();
        }
        for ((memory, length), number) in kept.iter().zip(0_u8..) {
            assert_eq!(memory[FRAME..FRAME + length][42..], [number; 600]);
        }
    });
}
