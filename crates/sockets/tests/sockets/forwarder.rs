//! Tests of forwarders, which accept flows to addresses of other hosts.

use linerate_link::memory::{MemoryConfig, pair};
use linerate_sockets::{
    Destinations, Flow, ForwardOptions, Forwarder, Interest, IpCidr, Net, Poller, Rejection, Route,
    StackConfig, TcpStream, Unreachable, Verdict,
};
use linerate_stack::Medium;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread::{self, JoinHandle};

/// An address that neither the client nor the gateway has. Only the forwarder accepts connections
/// to it.
const FAR: &str = "203.0.113.9:80";

fn host(link: linerate_link::MemoryLink, address: &str) -> Net {
    let mut config =
        StackConfig::new("02:00:00:00:00:01".parse().unwrap(), address.parse().unwrap());
    config.routes = vec![Route::direct(IpCidr::ALL_IPV4)];
    Net::builder(link, config).start().unwrap()
}

/// Returns a client, a gateway and its forwarder, on a link without MAC addresses. The forwarder's
/// hook returns `verdict` for each flow.
fn forwarded(verdict: Verdict) -> (Net, Net, Forwarder) {
    let (near, far) = pair(MemoryConfig { medium: Medium::Ip, ..MemoryConfig::default() }).unwrap();
    let (client, gateway) = (host(near, "10.0.0.1/24"), host(far, "10.0.0.2/24"));
    let (everything, options) = (Destinations::EVERYTHING, ForwardOptions::default());
    let forwarder = gateway.forward(everything, &options, move |_| verdict).unwrap();
    (client, gateway, forwarder)
}

fn connect(client: &Net) -> JoinHandle<io::Result<TcpStream>> {
    let client = client.clone();
    thread::spawn(move || client.connect(FAR))
}

#[test]
fn a_deferred_connection_is_accepted_at_its_destination() {
    let (client, _gateway, forwarder) = forwarded(Verdict::Defer);
    let connecting = connect(&client);
    let Flow::Handshake(handshake) = forwarder.accept().unwrap() else { panic!() };
    let far: SocketAddr = FAR.parse().unwrap();
    assert_eq!((handshake.destination(), handshake.opening().destination), (far, far));
    let mut accepted = handshake.accept().unwrap();
    assert_eq!(accepted.local_addr().unwrap(), far);
    let mut near = connecting.join().unwrap().unwrap();
    near.write_all(b"anywhere").unwrap();
    accepted.read_exact(&mut [0; 8]).unwrap();
    assert_eq!(forwarder.statistics().unwrap().accepted, 1);
}

#[test]
fn a_connection_is_rejected_or_dropped() {
    let (client, _gateway, forwarder) = forwarded(Verdict::Defer);
    let connecting = connect(&client);
    let Flow::Handshake(dropped) = forwarder.accept().unwrap() else { panic!() };
    drop(dropped);
    // The client got no answer when the first handshake was dropped. So it repeats its SYN, which
    // the forwarder reports as a new flow.
    let Flow::Handshake(handshake) = forwarder.accept().unwrap() else { panic!() };
    handshake.reject(Rejection::Reset).unwrap();
    assert_eq!(connecting.join().unwrap().unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn datagrams_are_a_flow_with_its_own_socket() {
    let (client, _gateway, forwarder) = forwarded(Verdict::Accept);
    let near = client.bind_udp("10.0.0.1:0").unwrap();
    near.connect(FAR).unwrap();
    near.send(b"ask").unwrap();
    let Flow::Udp(socket) = forwarder.accept().unwrap() else { panic!() };
    assert_eq!(socket.local_addr().unwrap(), FAR.parse().unwrap());
    assert_eq!(socket.peer_addr().unwrap(), near.local_addr().unwrap());
    let mut data = [0; 8];
    assert_eq!(socket.recv(&mut data).unwrap(), 3);
    socket.send(b"answer").unwrap();
    assert_eq!(near.recv(&mut data).unwrap(), 6);
    socket.report_unreachable(Unreachable::Port).unwrap();
    assert_eq!(near.recv(&mut data).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(
        near.report_unreachable(Unreachable::Port).unwrap_err().kind(),
        ErrorKind::NotConnected
    );
}

#[test]
fn a_network_has_one_forwarder_at_a_time() {
    let (_client, gateway, forwarder) = forwarded(Verdict::Drop);
    let (everything, options) = (Destinations::EVERYTHING, ForwardOptions::default());
    let again = || gateway.forward(everything, &options, |_| Verdict::Drop);
    assert_eq!(again().unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(forwarder);
    again().unwrap();
}

#[test]
fn a_poller_reports_new_flows() {
    let (client, _gateway, forwarder) = forwarded(Verdict::Accept);
    forwarder.set_nonblocking(true).unwrap();
    let poller = Poller::new().unwrap();
    poller.register(&forwarder, 7, Interest::Read).unwrap();
    let connecting = connect(&client);
    let mut events = Vec::new();
    let flow = loop {
        match forwarder.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poller.wait(&mut events, None).unwrap();
            }
            flow => break flow.unwrap(),
        }
    };
    assert!(matches!(flow, Flow::Tcp(_)));
    connecting.join().unwrap().unwrap();
    poller.deregister(&forwarder).unwrap();
}
