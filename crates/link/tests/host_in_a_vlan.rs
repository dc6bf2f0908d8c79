//! Tests of a host in a VLAN, on a TAP device or on a packet socket. The host at the other end uses
//! a packet socket without a VLAN: the kernel removes the tags before it passes frames to this
//! socket. A VLAN device of the kernel would be a simpler peer, but some kernels have none.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use linerate_link::namespace::{Network, isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_link::{
    MonotonicClock, PacketConfig, PacketLink, Readiness, Tap, TapConfig, Vlan, Waiter,
};
use linerate_stack::{
    ConnectOptions, Event, Host, Link, ListenOptions, Stack, StackConfig, TcpHandle,
};
use linerate_units::{Clock, Duration};
use linerate_wire::{IpCidr, MacAddress, VlanTag};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const BYTES: usize = 2_000_000;
/// The addresses of the two hosts: first a pair for IPv4, then a pair for IPv6.
const ENDS: [[IpAddr; 2]; 2] = [
    [IpAddr::V4(Ipv4Addr::new(10, 0, 5, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 5, 2))],
    [
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, 2)),
    ],
];

fn tag() -> VlanTag {
    "100:5".parse().unwrap()
}

/// Returns the bytes to be transferred.
fn pattern() -> Vec<u8> {
    (0..BYTES).map(|place| (place ^ (place >> 8) ^ (place >> 16)).to_le_bytes()[0]).collect()
}

fn host<L: Link>(link: L, mac: [u8; 6], own: IpAddr) -> Host<L> {
    let network = IpCidr::new(own, if own.is_ipv4() { 24 } else { 64 }).unwrap();
    Host::new(Stack::new(StackConfig::new(MacAddress::new(mac), network), [mac[5]; 32]), link)
}

/// Performs a turn of `host`, and calls `work`. If `work` returns false, because it could do
/// nothing, waits for the link.
fn turn<L: Link + Readiness>(
    host: &mut Host<L>,
    waiter: &mut Waiter,
    work: impl FnOnce(&mut Host<L>) -> bool,
) {
    let now = MonotonicClock.now();
    let turn = host.turn(now).unwrap();
    if !work(host) && !turn.more {
        let soon = now + Duration::from_millis(50);
        waiter.wait(host.link_mut(), turn.next.min(soon)).unwrap();
    }
}

/// Runs a host that sends received data back to the sender, until `is_over` is true.
fn echo<L: Link + Readiness>(host: &mut Host<L>, own: IpAddr, is_over: &AtomicBool) {
    let address = SocketAddr::new(own, 7);
    let listener = host.stack_mut().tcp_listen(address, &ListenOptions::default()).unwrap();
    let (mut waiter, mut connection, mut held) = (Waiter::new().unwrap(), None, Vec::new());
    while !is_over.load(Ordering::Acquire) {
        turn(host, &mut waiter, |host| {
            while let Some(event) = host.stack_mut().poll_event() {
                if event == Event::Incoming(listener) {
                    connection = host.stack_mut().tcp_accept(listener).map(|(handle, _)| handle);
                }
            }
            connection.is_some_and(|handle| pass_on(host, handle, &mut held))
        });
    }
}

/// Reads data, and sends it back as far as the send buffer has room. `held` contains the data that
/// had no room yet. Returns whether any data was read or written.
fn pass_on<L: Link>(host: &mut Host<L>, handle: TcpHandle, held: &mut Vec<u8>) -> bool {
    let now = MonotonicClock.now();
    let mut block = [0; 65_536];
    let read = match host.stack_mut().tcp_read(now, handle, &mut block) {
        Ok(count) if held.len() < 1 << 20 => {
            held.extend_from_slice(&block[..count]);
            count
        }
        _ => 0,
    };
    let written = host.stack_mut().tcp_write(now, handle, held).unwrap_or(0);
    held.drain(..written);
    read + written > 0
}

/// Sends data to the host at `other`, which sends it back. Checks that the returned data is equal.
fn exchange<L: Link + Readiness>(host: &mut Host<L>, other: IpAddr) {
    let (sent, mut written, mut back) = (pattern(), 0, Vec::new());
    let (now, options) = (MonotonicClock.now(), ConnectOptions::default());
    let address = SocketAddr::new(other, 7);
    let handle = host.stack_mut().tcp_connect(now, address, &options).unwrap();
    let mut waiter = Waiter::new().unwrap();
    while back.len() < BYTES {
        turn(host, &mut waiter, |host| {
            while host.stack_mut().poll_event().is_some() {}
            let (now, mut block) = (MonotonicClock.now(), [0; 65_536]);
            let wrote = host.stack_mut().tcp_write(now, handle, &sent[written..]).unwrap_or(0);
            let read = host.stack_mut().tcp_read(now, handle, &mut block).unwrap_or(0);
            back.extend_from_slice(&block[..read]);
            written += wrote;
            wrote + read > 0
        });
    }
    assert!(back == sent, "other data came back");
    host.stack_mut().tcp_abort(MonotonicClock.now(), handle).unwrap();
}

/// Exchanges data between hosts on two links, over IPv4 and over IPv6. Returns the links.
fn check<A: Link + Readiness, B: Link + Readiness + Send>(
    [near_mac, far_mac]: [[u8; 6]; 2],
    mut near: A,
    mut far: B,
) -> (A, B) {
    for [near_address, far_address] in ENDS {
        let mut near_host = host(near, near_mac, near_address);
        let mut far_host = host(far, far_mac, far_address);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| echo(&mut far_host, far_address, &is_over));
            exchange(&mut near_host, far_address);
            is_over.store(true, Ordering::Release);
        });
        near = near_host.into_parts().1;
        far = far_host.into_parts().1;
    }
    (near, far)
}

#[test]
fn a_host_in_a_vlan_of_a_tap_device_reaches_one_behind_the_kernel() {
    isolated_test(|| {
        for offloads in [false, true] {
            let tap = match Tap::open(&TapConfig { offloads, ..TapConfig::default() }) {
                Err(error @ (TapError::NoDevice | TapError::DeviceForbidden)) => {
                    return skip_test(&error);
                }
                opened => opened.unwrap(),
            };
            tap.interface().set_up().unwrap();
            let config = PacketConfig { offloads, ..PacketConfig::new(tap.interface().name()) };
            let far = PacketLink::open_vlan(&config, tag()).unwrap();
            let near = Vlan::new(tap, tag());
            assert_eq!(near.capabilities().mtu, 1_500, "the device carries longer tagged frames");
            let macs = [[2, 0, 0, 0, 0, 2], far.link().mac()];
            let (near, far) = check(macs, near, far);
            assert_eq!((near.link().malformed(), far.link().malformed()), (0, 0));
        }
    });
}

#[test]
fn hosts_in_a_vlan_of_packet_sockets_reach_each_other() {
    isolated_test(|| {
        let address = Ipv4Addr::new(10, 0, 0, 1);
        let (_near, network) = Network::behind_veth(["near", "far"], address).unwrap();
        for offloads in [false, true] {
            let open = move |name: &str| {
                let config = PacketConfig { offloads, ..PacketConfig::new(name) };
                PacketLink::open_vlan(&config, tag()).unwrap()
            };
            let (near, far) = (open("near"), network.run(move || open("far")));
            let macs = [near.link().mac(), far.link().mac()];
            let (near, far) = check(macs, near, far);
            assert_eq!((near.link().malformed(), far.link().malformed()), (0, 0));
        }
    });
}
