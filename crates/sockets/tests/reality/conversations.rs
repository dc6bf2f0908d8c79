//! Short exchanges with the kernel: requests and responses, closing, resets, keep-alive probes.

use crate::kernel::{KERNEL, OURS, assert_content, network};
use crate::store::{over_linerate, over_the_system, questions};
use linerate_link::namespace::isolated_test;
use linerate_sockets::{End, Fragmentation};
use linerate_stack::LinkError;
use linerate_tcp::KeepAlive;
use linerate_units as units;
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

#[test]
fn a_program_for_std_net_works_as_server_and_as_client_of_the_kernel() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let ours = net.bind((OURS, 80)).unwrap();
        let kernels = TcpListener::bind((KERNEL, 80)).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| over_linerate::serve(&ours, 1));
            scope.spawn(|| over_the_system::serve(&kernels, 1));
            let asked = over_the_system::ask(TcpStream::connect((OURS, 80)).unwrap(), &questions());
            let answered = over_linerate::ask(net.connect((KERNEL, 80)).unwrap(), &questions());
            assert_eq!(asked.unwrap(), answered.unwrap());
        });
        assert_content();
    });
}

#[test]
fn either_end_can_close_first_and_still_read() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut received = String::new();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        ours.write_all(b"request").unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        kernels.read_to_string(&mut received).unwrap();
        kernels.write_all(b" and answer").unwrap();
        drop(kernels);
        ours.read_to_string(&mut received).unwrap();

        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        kernels.write_all(b", request").unwrap();
        kernels.shutdown(Shutdown::Write).unwrap();
        ours.read_to_string(&mut received).unwrap();
        ours.write_all(b" and answer").unwrap();
        drop(ours);
        kernels.read_to_string(&mut received).unwrap();
        assert_eq!(received, "request and answer, request and answer");
        assert_content();
    });
}

#[test]
fn a_port_without_a_listener_refuses_connections() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        assert_eq!(net.connect((KERNEL, 81)).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(
            TcpStream::connect((OURS, 81)).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
    });
}

#[test]
fn a_reset_by_one_end_is_an_error_at_the_other() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        for ours_resets in [true, false] {
            let mut ours = net.connect((KERNEL, 80)).unwrap();
            let mut kernels = listener.accept().unwrap().0;
            ours.write_all(b"unread").unwrap();
            kernels.write_all(b"unread").unwrap();
            kernels.peek(&mut [0]).unwrap();
            ours.peek(&mut [0]).unwrap();
            // Dropping a stream with unread data resets the connection.
            let kind = if ours_resets {
                drop(ours);
                loop {
                    match kernels.read(&mut [0; 9]) {
                        Ok(length) => assert!(length > 0, "a clean end"),
                        Err(error) => break error.kind(),
                    }
                }
            } else {
                drop(kernels);
                loop {
                    match ours.read(&mut [0; 9]) {
                        Ok(length) => assert!(length > 0, "a clean end"),
                        Err(error) => break error.kind(),
                    }
                }
            };
            assert_eq!(kind, ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn datagrams_and_port_unreachable_errors_pass_in_both_directions() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let ours = net.bind_udp((OURS, 9)).unwrap();
        let kernels = UdpSocket::bind((KERNEL, 9)).unwrap();
        ours.connect((KERNEL, 9)).unwrap();
        kernels.connect((OURS, 9)).unwrap();
        let mut received = [0; 2_000];
        for length in [0, 1, 512, 1_472, 1_473] {
            assert_eq!(ours.send(&vec![1; length]).unwrap(), length);
            assert_eq!(kernels.recv(&mut received).unwrap(), length);
            assert_eq!(kernels.send(&vec![2; length]).unwrap(), length);
            assert_eq!(
                ours.recv_from(&mut received).unwrap(),
                (length, kernels.local_addr().unwrap())
            );
        }
        ours.set_fragmentation(Fragmentation::Never).unwrap();
        assert_eq!(ours.send(&[0; 1_473]).unwrap_err().kind(), ErrorKind::InvalidInput);
        ours.connect((KERNEL, 10)).unwrap();
        ours.send(b"anyone?").unwrap();
        assert_eq!(ours.recv(&mut received).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        kernels.connect((OURS, 10)).unwrap();
        kernels.send(b"anyone?").unwrap();
        assert_eq!(kernels.recv(&mut received).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_content();
    });
}

#[test]
fn connections_opened_by_both_ends_work_at_the_same_time() {
    isolated_test(|| {
        const CONNECTIONS: usize = 50;
        let Some((net, _)) = network() else { return };
        let ours = net.bind((OURS, 80)).unwrap();
        let kernels = TcpListener::bind((KERNEL, 80)).unwrap();
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect((OURS, 80)).unwrap();
                    let mut received = String::new();
                    stream.write_all(b"from the kernel").unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    stream.read_to_string(&mut received).unwrap();
                    assert_eq!(received, "from the kernel");
                });
                scope.spawn(|| {
                    let mut stream = net.connect((KERNEL, 80)).unwrap();
                    let mut received = String::new();
                    stream.write_all(b"to the kernel").unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    stream.read_to_string(&mut received).unwrap();
                    assert_eq!(received, "to the kernel");
                });
            }
            for stream in ours.incoming().take(CONNECTIONS) {
                let mut stream = stream.unwrap();
                scope.spawn(move || {
                    io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap()
                });
            }
            for stream in kernels.incoming().take(CONNECTIONS) {
                let mut stream = stream.unwrap();
                scope.spawn(move || {
                    io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap()
                });
            }
        });
        assert_content();
    });
}

/// Makes one exchange: the client sends four bytes and closes its sending direction with
/// `close_sending`. The server echoes the bytes and closes.
fn ask_once<C: Read + Write>(
    mut client: C,
    mut server: impl Read + Write,
    number: u32,
    close_sending: impl FnOnce(&C) -> io::Result<()>,
) {
    let mut received = [0; 4];
    client.write_all(&number.to_be_bytes()).unwrap();
    close_sending(&client).unwrap();
    server.read_exact(&mut received).unwrap();
    server.write_all(&received).unwrap();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, number.to_be_bytes());
}

/// Opens 500 connections from the kernel to our host and 500 from our host to the kernel,
/// alternately. Each has a handshake, a request, a response and a close by both endpoints.
#[test]
fn a_thousand_short_connections_succeed() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let ours = net.bind((OURS, 80)).unwrap();
        let kernels = TcpListener::bind((KERNEL, 80)).unwrap();
        for number in 0..500_u32 {
            let client = TcpStream::connect((OURS, 80)).unwrap();
            let server = ours.accept().unwrap().0;
            ask_once(client, server, number, |client| client.shutdown(Shutdown::Write));

            let client = net.connect((KERNEL, 80)).unwrap();
            let server = kernels.accept().unwrap().0;
            ask_once(client, server, number, |client| client.shutdown(Shutdown::Write));
        }
        let counters = net.counters().unwrap().tcp;
        assert_eq!((counters.active_opens, counters.passive_opens), (500, 500));
        assert_eq!((counters.attempt_failures, counters.established_resets), (0, 0));
        assert_content();
    });
}

/// Keep-alive with a probe after each 0.6 s of silence. It ends the connection after two unanswered
/// probes. With probes at intervals below 0.5 s, the connection would end although the peer is
/// alive: Linux answers at most one probe in half a second (`tcp_invalid_ratelimit`).
const KEEP_ALIVE: KeepAlive = KeepAlive {
    idle: units::Duration::from_millis(600),
    interval: units::Duration::from_millis(600),
    probes: 2,
};

#[test]
fn the_kernel_answers_our_keep_alive_probes() {
    isolated_test(|| {
        let Some((net, interface)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        ours.set_keep_alive(Some(KEEP_ALIVE)).unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        assert!(matches!(
            ours.read(&mut [0]).unwrap_err().kind(),
            ErrorKind::WouldBlock | ErrorKind::TimedOut
        ));
        assert!(ours.statistics().unwrap().keep_alive_probes >= 2);
        kernels.write_all(b"here").unwrap();
        let mut received = [0; 4];
        ours.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"here");
        // While the interface is down, the kernel receives no packets. So our keep-alive probes get
        // no answer, and the connection must end with an error.
        interface.set_down().unwrap();
        ours.set_read_timeout(None).unwrap();
        let error = ours.read(&mut [0]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::NetworkDown), "{error}");
    });
}

#[test]
fn we_answer_the_keep_alive_probes_of_the_kernel() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        sockopt::set_socket_keepalive(&kernels, true).unwrap();
        // One second is the shortest interval that the kernel permits. In the 3.5 s of the read
        // below, the kernel sends about three probes. If our host left one unanswered, the kernel
        // would end the connection.
        sockopt::set_tcp_keepidle(&kernels, Duration::from_secs(1)).unwrap();
        sockopt::set_tcp_keepintvl(&kernels, Duration::from_secs(1)).unwrap();
        sockopt::set_tcp_keepcnt(&kernels, 1).unwrap();
        kernels.set_read_timeout(Some(Duration::from_millis(3_500))).unwrap();
        assert_eq!(kernels.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(ours.statistics().unwrap().segments_received >= 3, "the kernel sent no probe");
        ours.write_all(b"here").unwrap();
        let mut received = [0; 4];
        kernels.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"here");
        assert_content();
    });
}

#[test]
fn removing_the_device_ends_all_sockets_with_an_error_that_names_the_machine() {
    isolated_test(|| {
        let Some((net, interface)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let kernels = listener.accept().unwrap();
        interface.delete().unwrap();
        let error = ours.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NetworkDown);
        assert!(error.to_string().starts_with("the machine took the link away"), "{error}");
        assert_eq!(net.end(), Some(End::Link(LinkError::Down)));
        drop(kernels);
    });
}
