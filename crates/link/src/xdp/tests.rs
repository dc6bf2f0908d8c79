//! Tests of AF_XDP links at the ends of a veth pair. The veth driver supports AF_XDP, but only with
//! copies.

use super::*;
use crate::Waiter;
use crate::namespace::{Network, isolated_test_of_root};
use crate::sys::socket_option;
use crate::testing::{arp_reply, next, send, sent_back};
use linerate_units::Bytes;
use std::net::UdpSocket;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The IP address that the kernel has on the near interface, where the host under test has another
/// address.
const BESIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);

/// Creates a veth pair, whose two interfaces are up in this network namespace.
fn veth_pair() -> [KernelInterface; 2] {
    let (near, far) = KernelInterface::create_veth("near", "far").unwrap();
    for end in [&near, &far] {
        end.disable_ipv6().unwrap();
        end.set_up().unwrap();
    }
    [near, far]
}

/// Returns a frame with an IPv4 packet to `address`, whose identification is `number`.
fn numbered_frame(address: Ipv4Addr, number: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame[18..20].copy_from_slice(&number.to_be_bytes());
    frame[30..34].copy_from_slice(&address.octets());
    frame
}

fn number_of(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[18], frame[19]])
}

#[test]
fn the_host_and_the_kernel_each_receive_their_frames() {
    isolated_test_of_root(|| share_an_interface(true));
}

#[test]
fn after_the_driver_the_host_and_the_kernel_each_receive_their_frames() {
    isolated_test_of_root(|| share_an_interface(false));
}

fn share_an_interface(in_driver: bool) {
    let (near, network) = Network::behind_veth(["near", "far"], KERNEL).unwrap();
    near.add_address(BESIDE, 24).unwrap();
    let mut link = XdpLink::open(&XdpConfig { in_driver, ..XdpConfig::new("near", OURS) }).unwrap();
    assert!(!link.is_zero_copy(), "a cable's driver copies");
    let beside = UdpSocket::bind((BESIDE, 7)).unwrap();
    let socket = network.run(|| {
        let socket = UdpSocket::bind((KERNEL, 0)).unwrap();
        socket.send_to(b"to the kernel", (BESIDE, 7)).unwrap();
        socket.send_to(b"to us", (OURS, 7)).unwrap();
        socket
    });
    let mut received = [0; 20];
    assert_eq!(beside.recv(&mut received).unwrap(), 13);
    let request = next(&mut link);
    let mac = link.mac();
    assert_eq!(send(&mut link, [arp_reply(&request, OURS, mac)]), Ok(1));
    let datagram = next(&mut link);
    assert_eq!((&datagram[..6], &datagram[42..47]), (&mac[..], &b"to us"[..]));
    let mut back = sent_back(&datagram);
    // The kernel has left the UDP checksum incomplete, and a veth pair never completes it. The test
    // therefore sets the field to zero, which means that the datagram has no checksum.
    back[40..42].fill(0);
    assert_eq!(send(&mut link, [back]), Ok(1));
    assert_eq!(socket.recv(&mut received).unwrap(), 5);
    assert_eq!(link.malformed(), 0);
}

#[test]
fn frames_are_reused_many_times_and_stay_in_order() {
    isolated_test_of_root(|| go_round(true));
}

#[test]
fn after_the_driver_frames_are_reused_many_times_and_stay_in_order() {
    isolated_test_of_root(|| go_round(false));
}

fn go_round(in_driver: bool) {
    const FRAMES: u16 = 5_000;
    let _veth = veth_pair();
    let config =
        |name, address| XdpConfig { frames: 64, in_driver, ..XdpConfig::new(name, address) };
    let mut left = XdpLink::open(&config("near", OURS)).unwrap();
    let mut right = XdpLink::open(&config("far", KERNEL)).unwrap();
    let (mut sent, mut received) = (0_u16, [0_u16; 2]);
    while received != [FRAMES; 2] {
        let batch = (FRAMES - sent).min(20);
        for (link, to) in [(&mut left, KERNEL), (&mut right, OURS)] {
            assert_eq!(
                send(link, (sent..sent + batch).map(|n| numbered_frame(to, n))),
                Ok(usize::from(batch))
            );
        }
        sent += batch;
        for (link, count) in [&mut left, &mut right].into_iter().zip(&mut received) {
            while *count < sent {
                link.receive(7, |frame| {
                    assert_eq!(number_of(frame.bytes), *count);
                    *count += 1;
                })
                .unwrap();
            }
        }
    }
    for link in [&left, &right] {
        let XdpStatistics {
            dropped,
            invalid_fill_addresses,
            invalid_descriptors,
            receive_ring_full,
            ..
        } = link.statistics();
        assert_eq!(
            [dropped, invalid_fill_addresses, invalid_descriptors, receive_ring_full],
            [0; 4]
        );
    }
}

#[test]
fn excess_frames_are_lost_and_counted() {
    isolated_test_of_root(|| overflow(true));
}

#[test]
fn after_the_driver_excess_frames_are_lost_and_counted() {
    isolated_test_of_root(|| overflow(false));
}

fn overflow(in_driver: bool) {
    let _veth = veth_pair();
    let mut left = XdpLink::open(&XdpConfig::new("near", OURS)).unwrap();
    let few = XdpConfig { frames: 64, in_driver, ..XdpConfig::new("far", KERNEL) };
    let mut right = XdpLink::open(&few).unwrap();
    for round in 0..10 {
        let sent =
            send(&mut left, (0..100).map(|number| numbered_frame(KERNEL, round * 100 + number)));
        assert_eq!(sent, Ok(100));
    }
    let mut numbers = Vec::new();
    right.receive(usize::MAX, |frame| numbers.push(number_of(frame.bytes))).unwrap();
    assert_eq!(numbers, (0..64).collect::<Vec<_>>(), "the first frames");
    let counted = right.statistics();
    assert!(
        counted.dropped + counted.receive_ring_full + counted.fill_ring_empty > 0,
        "{counted:?}"
    );
    send(&mut left, [numbered_frame(KERNEL, 9)]).unwrap();
    assert_eq!(number_of(&next(&mut right)), 9);
}

#[test]
fn a_queue_has_one_user_and_the_program_is_detached_with_the_link() {
    isolated_test_of_root(|| {
        let _veth = veth_pair();
        let config = XdpConfig::new("near", OURS);
        let link = XdpLink::open(&config).unwrap();
        let error = XdpLink::open(&config).unwrap_err();
        assert!(matches!(error, XdpError::Busy { .. }), "{error}");
        drop(link);
        let busy =
            XdpLink::open(&XdpConfig { busy_poll: Some(Duration::from_micros(20)), ..config })
                .unwrap();
        let microseconds =
            socket_option::get_integer(busy.fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL);
        assert_eq!(microseconds.unwrap(), 20);
    });
}

#[test]
fn invalid_configurations_are_refused_with_the_remedy() {
    isolated_test_of_root(|| {
        let [near, _far] = veth_pair();
        let config = || XdpConfig::new("near", OURS);
        let refused = |config: &XdpConfig| XdpLink::open(config).unwrap_err();
        assert!(matches!(refused(&XdpConfig::new("nowhere", OURS)), XdpError::Interface(_)));
        for frames in [10, 63, 65_537] {
            assert_eq!(refused(&XdpConfig { frames, ..config() }), XdpError::Frames(frames));
        }
        for count in [0, MOST_ADDRESSES + 1] {
            let addresses = vec![OURS; count];
            assert_eq!(refused(&XdpConfig { addresses, ..config() }), XdpError::Addresses(count));
        }
        assert_eq!(XdpLink::open_queues(&config(), 0).unwrap_err(), XdpError::Queues);
        let error = refused(&XdpConfig { queue: 9, ..config() });
        assert!(error.to_string().contains("no queue 9"), "{error}");
        let error = XdpLink::open_queues(&config(), 2).unwrap_err();
        assert!(
            error.to_string().contains("no queue 1"),
            "the second queue, and not the existing first one: {error}"
        );
        near.set_mtu(Bytes::new(9_000)).unwrap();
        assert!(refused(&config()).to_string().contains("3822 or less"));
    });
}

#[test]
fn a_program_compares_the_maximum_number_of_addresses() {
    isolated_test_of_root(|| {
        let _veth = veth_pair();
        let addresses: Vec<_> =
            (KERNEL.to_bits()..).map(Ipv4Addr::from_bits).take(MOST_ADDRESSES).collect();
        let mut left = XdpLink::open(&XdpConfig::new("near", OURS)).unwrap();
        let all = XdpConfig { addresses: addresses.clone(), ..XdpConfig::new("far", KERNEL) };
        let mut right = XdpLink::open(&all).unwrap();
        for (&address, number) in addresses.iter().zip(0..) {
            let others = [numbered_frame(Ipv4Addr::BROADCAST, 0), numbered_frame(address, number)];
            assert_eq!(send(&mut left, others), Ok(2));
            assert_eq!(number_of(&next(&mut right)), number);
        }
    });
}

#[test]
fn frames_are_received_up_to_the_budget() {
    isolated_test_of_root(|| {
        let _veth = veth_pair();
        let mut left = XdpLink::open(&XdpConfig::new("near", OURS)).unwrap();
        let mut right = XdpLink::open(&XdpConfig::new("far", KERNEL)).unwrap();
        assert_eq!(send(&mut left, (0..200).map(|number| numbered_frame(KERNEL, number))), Ok(200));
        let mut seen = 0;
        while seen < 200 {
            let mut came = 0;
            let received = right.receive(70, |frame| {
                assert_eq!(number_of(frame.bytes), seen);
                (came, seen) = (came + 1, seen + 1);
            });
            assert_eq!(received, Ok(came));
            assert!(came <= 70);
        }
    });
}

#[test]
fn a_starved_link_is_ready_while_there_is_a_free_frame() {
    isolated_test_of_root(|| {
        let _veth = veth_pair();
        let mut link =
            XdpLink::open(&XdpConfig { frames: 64, ..XdpConfig::new("near", OURS) }).unwrap();
        let _other = XdpLink::open(&XdpConfig::new("far", KERNEL)).unwrap();
        let fill = |bytes: &mut [u8]| {
            bytes[..60].copy_from_slice(&numbered_frame(KERNEL, 0));
            Some(TxFrame::whole(60))
        };
        assert!(!link.wants_room() && !link.is_ready());
        assert_eq!(link.transmit(100, fill), Ok(64));
        assert!(link.wants_room());
        let mut waiter = Waiter::new().unwrap();
        while !link.is_ready() {
            waiter.wait(&mut link, Instant::NEVER).unwrap();
        }
        assert_eq!(link.transmit(1, fill), Ok(1));
        assert!(!link.wants_room() && !link.is_ready());
    });
}

#[test]
fn the_link_is_down_with_its_interface() {
    isolated_test_of_root(|| {
        let [near, _far] = veth_pair();
        let mut link = XdpLink::open(&XdpConfig::new("near", OURS)).unwrap();
        near.set_down().unwrap();
        assert_eq!(send(&mut link, [numbered_frame(KERNEL, 1)]), Err(LinkError::Down));
    });
}

#[test]
fn the_memory_of_a_frame_has_room_for_packet_header_and_headroom() {
    assert_eq!(
        [1_500, 1_774, 1_775, 3_822, 3_823, 65_535].map(frame_size),
        [Some(2_048), Some(2_048), Some(4_096), Some(4_096), None, None]
    );
}
