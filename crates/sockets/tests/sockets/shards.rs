//! Tests of a network with several shards, each with a queue of the link and a thread. Programs use
//! it like a network with one shard.

use crate::networks::{LEFT, RIGHT, config, until_waits};
use crate::pattern;
use linerate_link::MemoryLink;
use linerate_link::memory::{MemoryConfig, queues};
use linerate_sockets::{Builder, ConnectOptions, End, Net};
use linerate_stack::LinkError;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const SHARDS: usize = 3;

fn builder(links: Vec<MemoryLink>, address: Ipv4Addr, seed: u8) -> Builder<MemoryLink> {
    let mut links = links.into_iter();
    Net::builder(links.next().unwrap(), config(address)).queues(links).seed([seed; 32])
}

/// Creates two networks with different hash keys. The sender selects the queue of a flow by its own
/// key, and the receiver the owner of the flow by the other key. Therefore many frames arrive at a
/// shard that does not own their flow, and must be handed over.
fn networks() -> (Net, Net) {
    let (left, right) = queues(MemoryConfig::default(), SHARDS).unwrap();
    (builder(left, LEFT, 1).start().unwrap(), builder(right, RIGHT, 2).start().unwrap())
}

#[test]
fn connections_on_all_shards_carry_their_data() {
    const CONNECTIONS: u64 = 12;
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answering: Vec<_> = (0..3)
        .map(|_| {
            let listener = listener.try_clone().unwrap();
            thread::spawn(move || {
                for stream in listener.incoming().take(4).map(Result::unwrap) {
                    pattern::receive(&stream, 300_000);
                    pattern::send(&stream, 200_000);
                }
            })
        })
        .collect();
    for _ in 0..CONNECTIONS {
        let stream = right.connect(address).unwrap();
        pattern::send(&stream, 300_000);
        stream.shutdown(Shutdown::Write).unwrap();
        pattern::receive(&stream, 200_000);
    }
    answering.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((left.shards(), right.shards()), (SHARDS, SHARDS));
    assert_eq!(left.counters().unwrap().tcp.passive_opens, CONNECTIONS);
    assert_eq!(right.counters().unwrap().tcp.active_opens, CONNECTIONS);
    assert_eq!(listener.statistics().unwrap().syns_kept, CONNECTIONS);
    let given: u64 = left.handovers().iter().map(|shard| shard.given).sum();
    assert!(given > 0, "the hash keys differ, so frames change shards");
}

#[test]
fn a_chosen_local_port_selects_its_shard() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 80)).unwrap();
    for port in 5_000..5_012 {
        let local = SocketAddrV4::new(RIGHT, port);
        let options = ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() };
        let far = right.connect_with((LEFT, 80), &options).unwrap();
        assert_eq!(listener.accept().unwrap().1, local.into());
        let again = right.connect_with((LEFT, 80), &options).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
        drop(far);
    }
}

#[test]
fn an_address_can_be_bound_once_among_all_shards() {
    let (left, _right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    assert_eq!(left.bind(address).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(listener);
    left.bind(address).unwrap();
}

#[test]
fn a_host_with_shards_connects_to_itself_and_answers_datagrams() {
    let (left, right) = networks();
    let listener = left.bind("0.0.0.0:80").unwrap();
    for _ in 0..2 * SHARDS {
        let far = left.connect((LEFT, 80)).unwrap();
        pattern::send(&far, 1_000);
        drop(far);
        pattern::receive(listener.accept().unwrap().0, 1_000);
    }
    let asked = left.bind_udp((LEFT, 53)).unwrap();
    for _ in 0..8 {
        let asking = right.bind_udp((RIGHT, 0)).unwrap();
        asking.send_to(b"name?", (LEFT, 53)).unwrap();
        let mut request = [0; 9];
        let (_, from) = asked.recv_from(&mut request).unwrap();
        asked.send_to(b"an answer", from).unwrap();
        assert_eq!(asking.recv(&mut request).unwrap(), 9);
    }
}

#[test]
fn accept_fails_when_the_listener_or_the_network_ends() {
    let (left, _right) = networks();
    let listener = left.bind((LEFT, 80)).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    listener.set_nonblocking(false).unwrap();
    let waiting = |listener: &linerate_sockets::TcpListener| {
        let (listener, before) = (listener.try_clone().unwrap(), left.activity().waits);
        let thread = thread::spawn(move || listener.accept().unwrap_err().kind());
        until_waits(&left, before + 1);
        thread
    };
    let thread = waiting(&listener);
    listener.shutdown().unwrap();
    assert_eq!(thread.join().unwrap(), ErrorKind::InvalidInput);
    let listener = left.bind((LEFT, 80)).unwrap();
    let thread = waiting(&listener);
    left.finish(Duration::from_secs(60)).unwrap();
    assert_eq!(thread.join().unwrap(), ErrorKind::NetworkDown);
}

#[test]
fn a_failing_queue_ends_the_network_and_returns_every_queue() {
    let (mut left, right) = queues(MemoryConfig::default(), SHARDS).unwrap();
    let (sender, given_back) = mpsc::channel();
    let net = builder(right, RIGHT, 2)
        .when_ended(move |link| sender.send(link).unwrap())
        .start()
        .unwrap();
    drop(left.remove(1));
    let queues: Vec<_> = given_back.iter().take(SHARDS).collect();
    assert_eq!(queues.len(), SHARDS);
    assert_eq!(net.end(), Some(End::Link(LinkError::Down)));
    assert_eq!(net.connect((LEFT, 80)).unwrap_err().kind(), ErrorKind::NetworkDown);
}
