//! Wrong use of sockets: a test program runs on the sockets of `std::net` and on ours. It must get
//! equal kinds of errors from both.

use crate::networks::networks;
use std::io;

/// Runs the test program, and returns the results of its steps. It is a macro because the sockets
/// of `std::net` and ours have different types. Its arguments are the functions that open sockets.
macro_rules! outcomes {
    ($connect:expr, $bind:expr, $bind_udp:expr) => {{
        let (connect, bind, bind_udp) = ($connect, $bind, $bind_udp);
        let mut seen: Vec<(&str, Result<usize, io::ErrorKind>)> = Vec::new();
        let mut note = |what, outcome: io::Result<usize>| {
            seen.push((what, outcome.map_err(|error| error.kind())));
        };
        let second = Some(Duration::from_secs(1));
        let listener = bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        note("double bind", bind(&address).map(|_| 0));
        note("bind to a foreign address", bind("192.0.2.1:0").map(|_| 0));
        note("bind to no address", bind("nonsense").map(|_| 0));
        note("connect to a closed port", connect("127.0.0.1:1").map(|_| 0));
        listener.set_nonblocking(true).unwrap();
        note("accept nothing", listener.accept().map(|_| 0));
        listener.set_nonblocking(false).unwrap();

        let near = connect(&address).unwrap();
        let far = listener.accept().unwrap().0;
        (&far).write_all(&[7]).unwrap();
        note("peek at a byte", near.peek(&mut [0]));
        note("read into no buffer", (&near).read(&mut []));
        note("peek into no buffer", near.peek(&mut []));
        note("read the byte", (&near).read(&mut [0]));
        note("write nothing", (&near).write(&[]));
        note("write no pieces", (&near).write_vectored(&[]));
        near.set_nonblocking(true).unwrap();
        note("read nothing", (&near).read(&mut [0]));
        note("peek at nothing", near.peek(&mut [0]));
        near.set_nonblocking(false).unwrap();
        note("zero timeout", near.set_read_timeout(Some(Duration::ZERO)).map(|()| 0));
        near.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        note("read in vain", (&near).read(&mut [0]));
        near.set_read_timeout(second).unwrap();
        note("TTL of zero", near.set_ttl(0).map(|()| 0));
        note("TTL of 256", near.set_ttl(256).map(|()| 0));
        near.shutdown(Shutdown::Write).unwrap();
        note("write after shutdown", (&near).write(&[0]));
        note("shut down again", near.shutdown(Shutdown::Write).map(|()| 0));
        note("read the end", (&far).read(&mut [0]));
        far.shutdown(Shutdown::Both).unwrap();
        note("read after shutdown", (&far).read(&mut [0]));
        note("write after both", (&far).write(&[0]));
        note("read the other end", (&near).read(&mut [0]));

        let socket = bind_udp("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        note("double bind of UDP", bind_udp(&address).map(|_| 0));
        note("UDP at a foreign address", bind_udp("192.0.2.1:0").map(|_| 0));
        note("peer of an unconnected socket", socket.peer_addr().map(|_| 0));
        note("send to port zero", socket.send_to(&[0], "127.0.0.1:0"));
        note("send to no address", socket.send_to(&[0], "nonsense"));
        note("zero timeout of UDP", socket.set_read_timeout(Some(Duration::ZERO)).map(|()| 0));
        socket.set_nonblocking(true).unwrap();
        note("receive nothing", socket.recv_from(&mut [0]).map(|_| 0));
        socket.set_nonblocking(false).unwrap();
        socket.connect("127.0.0.1:1").unwrap();
        socket.send(&[0]).unwrap();
        socket.set_read_timeout(second).unwrap();
        note("receive a refusal", socket.recv(&mut [0]));
        note("send an empty datagram", bind_udp("127.0.0.1:0").unwrap().send_to(&[], &address));
        seen
    }};
}

#[test]
fn wrong_use_gets_the_kinds_of_std() {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
    use std::time::Duration;
    let (net, _other) = networks();
    let ours = outcomes!(
        |address: &str| net.connect(address),
        |address: &str| net.bind(address),
        |address: &str| net.bind_udp(address)
    );
    let system = outcomes!(
        |address: &str| TcpStream::connect(address),
        |address: &str| TcpListener::bind(address),
        |address: &str| UdpSocket::bind(address)
    );
    for (ours, system) in ours.iter().zip(&system) {
        assert_eq!(ours, system);
    }
    assert_eq!(ours.len(), system.len());
}
