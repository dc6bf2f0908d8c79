//! Short exchanges with the kernel: who speaks, who hangs up, and how it is told.

use crate::kernel::{KERNEL, OURS, assert_content, network};
use crate::store::{over_linerate, over_the_system, questions};
use linerate_link::namespace::isolated_test;
use linerate_sockets::End;
use linerate_stack::LinkError;
use linerate_tcp::KeepAlive;
use linerate_units as units;
use rustix::net::sockopt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

#[test]
fn a_program_written_for_std_serves_the_kernel_and_is_served_by_it() {
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
fn both_can_hang_up_first_and_hear_the_other_out() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut heard = String::new();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        ours.write_all(b"question").unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        kernels.read_to_string(&mut heard).unwrap();
        kernels.write_all(b" and answer").unwrap();
        drop(kernels);
        ours.read_to_string(&mut heard).unwrap();

        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        kernels.write_all(b", question").unwrap();
        kernels.shutdown(Shutdown::Write).unwrap();
        ours.read_to_string(&mut heard).unwrap();
        ours.write_all(b" and answer").unwrap();
        drop(ours);
        kernels.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "question and answer, question and answer");
        assert_content();
    });
}

#[test]
fn where_nobody_listens_both_are_refused() {
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
fn a_reset_by_either_is_a_reset_to_the_other() {
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
            // Whoever throws away what it has not read resets.
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
fn datagrams_go_both_ways_and_so_do_refusals() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let ours = net.bind_udp((OURS, 9)).unwrap();
        let kernels = UdpSocket::bind((KERNEL, 9)).unwrap();
        ours.connect((KERNEL, 9)).unwrap();
        kernels.connect((OURS, 9)).unwrap();
        let mut heard = [0; 2_000];
        for length in [0, 1, 512, 1_472] {
            assert_eq!(ours.send(&vec![1; length]).unwrap(), length);
            assert_eq!(kernels.recv(&mut heard).unwrap(), length);
            assert_eq!(kernels.send(&vec![2; length]).unwrap(), length);
            assert_eq!(
                ours.recv_from(&mut heard).unwrap(),
                (length, kernels.local_addr().unwrap())
            );
        }
        assert_eq!(ours.send(&[0; 1_473]).unwrap_err().kind(), ErrorKind::InvalidInput);
        ours.connect((KERNEL, 10)).unwrap();
        ours.send(b"anybody?").unwrap();
        assert_eq!(ours.recv(&mut heard).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        kernels.connect((OURS, 10)).unwrap();
        kernels.send(b"anybody?").unwrap();
        assert_eq!(kernels.recv(&mut heard).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_content();
    });
}

#[test]
fn many_connections_of_both_kinds_at_once() {
    isolated_test(|| {
        const CONNECTIONS: usize = 50;
        let Some((net, _)) = network() else { return };
        let ours = net.bind((OURS, 80)).unwrap();
        let kernels = TcpListener::bind((KERNEL, 80)).unwrap();
        thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect((OURS, 80)).unwrap();
                    let mut heard = String::new();
                    stream.write_all(b"from the kernel").unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    stream.read_to_string(&mut heard).unwrap();
                    assert_eq!(heard, "from the kernel");
                });
                scope.spawn(|| {
                    let mut stream = net.connect((KERNEL, 80)).unwrap();
                    let mut heard = String::new();
                    stream.write_all(b"to the kernel").unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    stream.read_to_string(&mut heard).unwrap();
                    assert_eq!(heard, "to the kernel");
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

/// The client asks with four bytes and `says_no_more`, the server answers with the same and is gone.
fn ask_once<C: Read + Write>(
    mut client: C,
    mut server: impl Read + Write,
    number: u32,
    says_no_more: impl FnOnce(&C) -> io::Result<()>,
) {
    let mut heard = [0; 4];
    client.write_all(&number.to_be_bytes()).unwrap();
    says_no_more(&client).unwrap();
    server.read_exact(&mut heard).unwrap();
    server.write_all(&heard).unwrap();
    assert_eq!(server.read(&mut [0]).unwrap(), 0);
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, number.to_be_bytes());
}

/// Each with its own handshake, a question, an answer, and an end on both sides; every second one is
/// opened by the kernel.
#[test]
fn a_thousand_short_connections_one_after_the_other() {
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

/// A silent peer is asked after 0.6 s, and given up when two questions were not answered. Linux answers
/// one such question in half a second and no more (`tcp_invalid_ratelimit`).
const IMPATIENT: KeepAlive = KeepAlive {
    idle: units::Duration::from_millis(600),
    interval: units::Duration::from_millis(600),
    probes: 2,
};

#[test]
fn the_kernel_answers_our_keep_alive_probes_until_it_is_gone() {
    isolated_test(|| {
        let Some((net, interface)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        ours.set_keep_alive(Some(IMPATIENT)).unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        assert!(matches!(
            ours.read(&mut [0]).unwrap_err().kind(),
            ErrorKind::WouldBlock | ErrorKind::TimedOut
        ));
        assert!(ours.statistics().unwrap().keep_alive_probes >= 2);
        kernels.write_all(b"here").unwrap();
        let mut heard = [0; 4];
        ours.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"here");
        // Its cable is cut: nobody says anything any more.
        interface.set_down().unwrap();
        ours.set_read_timeout(None).unwrap();
        let error = ours.read(&mut [0]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::NetworkDown), "{error}");
    });
}

#[test]
fn we_answer_the_kernel_s_keep_alive_probes() {
    isolated_test(|| {
        let Some((net, _)) = network() else { return };
        let listener = TcpListener::bind((KERNEL, 80)).unwrap();
        let mut ours = net.connect((KERNEL, 80)).unwrap();
        let mut kernels = listener.accept().unwrap().0;
        sockopt::set_socket_keepalive(&kernels, true).unwrap();
        // The shortest that the kernel knows: a second, and then it gives up at the first silence.
        sockopt::set_tcp_keepidle(&kernels, Duration::from_secs(1)).unwrap();
        sockopt::set_tcp_keepintvl(&kernels, Duration::from_secs(1)).unwrap();
        sockopt::set_tcp_keepcnt(&kernels, 1).unwrap();
        kernels.set_read_timeout(Some(Duration::from_millis(3_500))).unwrap();
        assert_eq!(kernels.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(ours.statistics().unwrap().segments_received >= 3, "the kernel has not asked");
        ours.write_all(b"here").unwrap();
        let mut heard = [0; 4];
        kernels.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"here");
        assert_content();
    });
}

#[test]
fn a_device_that_is_taken_away_ends_everything_with_the_machine_s_name_on_it() {
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
