//! Tests with a packet socket at one end of a veth pair and the kernel at the other.

use super::*;
use crate::Waiter;
use crate::namespace::{Network, isolated_test};
use crate::testing::{
    FramesOfLength, arp_reply, check_borrowed_data_is_sent_whole,
    check_frames_are_stamped_on_arrival, check_offloads_are_described,
    check_the_largest_frame_is_received, check_too_long_frames_are_counted, next, send, sent_back,
};
use linerate_stack::RxChecksum;
use linerate_units::Instant;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Opens a packet socket at one end of a veth pair. The other end is in a second network namespace,
/// and its peer there is the kernel.
fn veth_pair(config: &PacketConfig) -> (PacketLink, Network) {
    let (_, network) = Network::behind_veth(["near", "far"], KERNEL).unwrap();
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
fn frames_are_exchanged_with_the_kernel() {
    isolated_test(|| {
        for wanted in [None, Some([2, 0, 0, 0, 0, 9])] {
            let (mut link, network) = veth_pair(&PacketConfig { mac: wanted, ..config() });
            let mac = link.mac();
            assert_eq!(mac, wanted.unwrap_or_else(|| link.interface().mac_address().unwrap()));
            let socket = ask(&network);
            let request = next(&mut link);
            assert_eq!(send(&mut link, &[arp_reply(&request, OURS, mac)]), Ok(1));
            let datagram = next(&mut link);
            assert_eq!((&datagram[..6], &datagram[42..]), (&mac[..], &b"over a cable"[..]));
            // The kernel has left the UDP checksum incomplete, because the veth pair has checksum
            // offload. Without offloads, this link cannot have it completed when it sends the
            // datagram back. The test therefore sets the checksum to zero, which means that there
            // is none.
            let mut back = sent_back(&datagram);
            back[40..42].fill(0);
            assert_eq!(send(&mut link, &[back]), Ok(1));
            let mut received = [0; 20];
            assert_eq!(socket.recv(&mut received).unwrap(), 12);
            assert_eq!((link.dropped(), link.refused(), link.malformed()), (0, 0, 0));
            link.interface().clone().delete().unwrap();
        }
    });
}

#[test]
fn a_partial_checksum_of_the_kernel_is_reported() {
    isolated_test(|| {
        let (mut link, network) = veth_pair(&PacketConfig::new("near"));
        let capabilities = link.capabilities();
        assert_eq!((capabilities.mtu, capabilities.offloads.gso_max_size), (1_500, 65_535));
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
fn frames_to_others_and_own_frames_are_not_received() {
    isolated_test(|| {
        let (mut link, network) = veth_pair(&config());
        let (mut other, mac) = (vec![0; 60], link.mac());
        other[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0x77]);
        other[12..14].copy_from_slice(&[8, 0]);
        let mut ours = other.clone();
        ours[..6].copy_from_slice(&mac);
        let mut unknown = ours.clone();
        unknown[12..14].copy_from_slice(&[0x88, 0xcc]);
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
fn frames_that_the_kernel_sends_on_the_interface_are_not_received() {
    isolated_test(|| {
        let (mut link, _network) = veth_pair(&config());
        let beside = Ipv4Addr::new(10, 0, 0, 3);
        link.interface().add_address(beside, 24).unwrap();
        let socket = UdpSocket::bind((beside, 0)).unwrap();
        socket.set_broadcast(true).unwrap();
        socket.send_to(b"to all", (Ipv4Addr::new(10, 0, 0, 255), 9)).unwrap();
        assert_eq!(link.receive(64, |frame| panic!("{frame:?}")), Ok(0));
    });
}

#[test]
fn frames_to_a_mac_address_that_differs_in_one_byte_are_not_received() {
    isolated_test(|| {
        let (mut link, network) = veth_pair(&config());
        let mut ours = vec![0; 60];
        ours[..6].copy_from_slice(&link.mac());
        ours[12..14].copy_from_slice(&[8, 0]);
        let others = (0..6).map(|at| {
            let mut other = ours.clone();
            // Inverting bit 4 gives the MAC address of another host. Inverting the lowest bit of
            // the first byte would give a group address, which the filter must accept.
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
fn the_receive_queue_is_widened_and_the_interface_queue_is_bypassed_on_request() {
    isolated_test(|| {
        for bypass_queue in [false, true] {
            let (link, _network) = veth_pair(&PacketConfig { bypass_queue, ..config() });
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

/// Returns a link over a UDP socket on the loopback interface instead of a packet socket, and the
/// peer of the UDP socket. The buffers of both sockets have room for several batches of frames.
fn over_loopback() -> (PacketLink, UdpSocket) {
    let [ours, theirs] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    ours.connect(theirs.local_addr().unwrap()).unwrap();
    theirs.connect(ours.local_addr().unwrap()).unwrap();
    let interface = KernelInterface::loopback().unwrap();
    (PacketLink::over(ours.into(), interface, [2; 6], 1_500, true), theirs)
}

#[test]
fn receiving_continues_over_several_calls_up_to_the_budget() {
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
fn sending_continues_over_several_calls_up_to_the_budget() {
    for borrowed in [false, true] {
        let (mut link, theirs) = over_loopback();
        let mut lengths = FramesOfLength(&[60; 100]);
        for (budget, expected) in [(0, 0), (7, 7), (70, 70), (70, 23)] {
            let sent = if borrowed {
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
fn the_largest_frame_is_received() {
    check_the_largest_frame_is_received(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn frames_of_several_calls_arrive_in_order_and_drops_are_counted() {
    const FRAMES: u16 = 100;
    isolated_test(|| {
        let (mut link, network) = veth_pair(&config());
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
                numbers.push(u16::from_be_bytes([frame.bytes[14], frame.bytes[15]]));
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
fn the_link_is_down_with_its_interface_down_or_gone() {
    isolated_test(|| {
        let (mut link, _network) = veth_pair(&config());
        link.interface().set_down().unwrap();
        assert_eq!(link.receive(1, |_| ()), Err(LinkError::Down));
        assert_eq!(send(&mut link, &[vec![0; 60]]), Err(LinkError::Down));
    });
}

#[test]
fn errors_name_what_is_missing() {
    isolated_test(|| {
        let missing = PacketLink::open(&PacketConfig::new("nowhere")).unwrap_err();
        assert!(matches!(missing, PacketError::Interface(InterfaceError::Missing(_))), "{missing}");
    });
}

#[test]
fn borrowed_data_is_sent_in_order_among_whole_frames() {
    check_borrowed_data_is_sent_whole(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn too_long_frames_are_counted_and_later_ones_are_sent() {
    check_too_long_frames_are_counted(
        |ours| PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 9_000, true),
        PacketLink::refused,
    );
}

#[test]
fn offloads_are_described_before_the_frame() {
    check_offloads_are_described(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn frames_are_stamped_on_arrival() {
    check_frames_are_stamped_on_arrival(|ours| {
        PacketLink::over(ours, KernelInterface::loopback().unwrap(), [2; 6], 1_500, true)
    });
}

#[test]
fn frames_with_invalid_headers_are_dropped_counted_and_part_of_the_budget() {
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
fn kept_frames_are_not_overwritten() {
    isolated_test(|| {
        let (mut link, network) = veth_pair(&config());
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
                kept.push((Arc::clone(frame.memory.unwrap()), frame.bytes.len()));
            })
            .unwrap();
        }
        for ((memory, length), number) in kept.iter().zip(0_u8..) {
            assert_eq!(memory[FRAME_OFFSET..FRAME_OFFSET + length][42..], [number; 600]);
        }
    });
}
