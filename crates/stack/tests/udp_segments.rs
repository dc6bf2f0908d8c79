//! Tests of calls that send or receive several UDP datagrams at once.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_stack::{Error, Fragmentation, UdpHandle, UdpOptions};
use linerate_testkit::{Pair, Setup, Side};
use linerate_units::Duration;
use std::num::NonZeroUsize;

fn bind(pair: &mut Pair, side: Side, port: u16, options: &UdpOptions) -> UdpHandle {
    pair.stack(side).udp_bind((side.address(), port), options).unwrap()
}

fn send(pair: &mut Pair, socket: UdpHandle, data: &[u8], segment: usize) -> Result<(), Error> {
    let (now, segment) = (pair.now, NonZeroUsize::new(segment).unwrap());
    let to = (Side::Right.address(), 9);
    pair.stack(Side::Left).udp_send_segments(now, socket, to, data, segment)
}

#[test]
fn segments_are_datagrams_that_are_received_one_by_one_or_together() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let left = bind(&mut pair, Side::Left, 5, &UdpOptions::default());
    let right = bind(&mut pair, Side::Right, 9, &UdpOptions::default());
    let data: Vec<u8> = (0..=250).cycle().take(3_300).collect();
    for _ in 0..2 {
        assert_eq!(send(&mut pair, left, &data, 1_000), Ok(()));
    }
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.stack(Side::Right).counters().udp.in_datagrams, 8);
    let mut into = vec![0; 10_000];
    let first = pair.stack(Side::Right).udp_receive_from(right, &mut into).unwrap();
    assert_eq!((first.0, &into[..1_000]), (1_000, &data[..1_000]));
    let rest = pair.stack(Side::Right).udp_receive_segments(right, &mut into).unwrap();
    assert_eq!((rest.length, rest.segment), (2_300, 1_000), "a short one is the last");
    assert_eq!(into[..2_300], data[1_000..]);
    let part = pair.stack(Side::Right).udp_receive_segments(right, &mut into[..2_500]).unwrap();
    assert_eq!((part.length, part.segment), (2_000, 1_000), "as many as fit");
    let part = pair.stack(Side::Right).udp_receive_segments(right, &mut into).unwrap();
    assert_eq!((part.length, &into[..1_300]), (1_300, &data[2_000..]));
    let none = pair.stack(Side::Right).udp_receive_segments(right, &mut into);
    assert_eq!(none, Err(Error::WouldBlock));
}

#[test]
fn all_segments_are_queued_or_none() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let options = UdpOptions { send_bytes: 3 * (1_000 + 92), ..UdpOptions::default() };
    let left = bind(&mut pair, Side::Left, 5, &options);
    bind(&mut pair, Side::Right, 9, &UdpOptions::default());
    assert_eq!(send(&mut pair, left, &[1; 2_000], 1_000), Ok(()));
    assert_eq!(send(&mut pair, left, &[2; 2_000], 1_000), Err(Error::WouldBlock));
    let long = send(&mut pair, left, &[3; 4_000], 1_000);
    assert!(matches!(long, Err(Error::MessageTooLong { .. })), "{long:?}");
    pair.stack(Side::Left).udp_set_fragmentation(left, Fragmentation::Never).unwrap();
    let long = send(&mut pair, left, &[3; 3_000], 1_473);
    assert_eq!(long, Err(Error::MessageTooLong { limit: 1_472 }));
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.stack(Side::Right).counters().udp.in_datagrams, 2);
}
