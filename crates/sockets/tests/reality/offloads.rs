//! A TAP device with offloads: super-frames of up to 64 KiB go whole between the kernel and us, and are cut
//! where a wire is in the way.

use crate::kernel::{
    KERNEL, OURS, WIRE, assert_content, frame_sizes, network_on, network_with_offloads, open,
    open_with_offloads, take_up,
};
use crate::paths::{BEHIND, ROUTER, route_behind, send_through_a_narrowing_path};
use crate::pattern;
use crate::transfers::{bad_cable, download, from_kernel, to_kernel, upload};
use bytes::Bytes;
use linerate_link::TapConfig;
use linerate_link::namespace::isolated_test;
use linerate_sockets::{Net, StackConfig, TcpStream};
use linerate_stack::Route;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::{fs, io, thread};

const BYTES: u64 = 32 << 20;

#[test]
fn what_the_kernel_sends_arrives_in_super_frames() {
    isolated_test(|| {
        let Some((net, _)) = network_with_offloads(|tap| tap) else { return };
        let (ours, kernels) = from_kernel(&net);
        download(&ours, &kernels, BYTES);
        let counted = ours.statistics().unwrap();
        assert_eq!(counted.bytes_received, BYTES);
        assert!(frame_sizes(&net)[0] > WIRE, "{counted:?}");
        assert!(counted.segments_joined > 0, "{counted:?}");
        let checksums = net.counters().unwrap().tcp.in_checksum_errors;
        assert_eq!(checksums, 0);
        assert_content();
    });
}

#[test]
fn what_we_send_arrives_in_super_frames() {
    isolated_test(|| {
        let Some((net, _)) = network_with_offloads(|tap| tap) else { return };
        let (ours, kernels) = to_kernel(&net);
        upload(&ours, &kernels, BYTES);
        let counted = ours.statistics().unwrap();
        assert_eq!((counted.bytes_sent, counted.bytes_retransmitted), (BYTES, 0));
        assert!(frame_sizes(&net)[1] > WIRE, "{:?}", net.counters());
        assert_content();
    });
}

/// An end of ours that copies nothing.
struct Shared<'a>(&'a TcpStream);

impl Write for Shared<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.write_shared(&mut Bytes::copy_from_slice(data))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Shared<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.read_shared(into.len())?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

/// Both directions at once, in memory that is shared with the application, over a device with offloads and
/// one without.
#[test]
fn what_is_shared_gets_there_and_back() {
    isolated_test(|| {
        for offloads in [true, false] {
            let config = TapConfig { offloads, ..TapConfig::default() };
            let Some(tap) = open(&config) else { return };
            take_up(&tap, KERNEL);
            let (net, _) = network_on(tap, |tap| tap, |_| ());
            let (ours, kernels) = to_kernel(&net);
            thread::scope(|scope| {
                scope.spawn(|| {
                    pattern::send(Shared(&ours), BYTES);
                    ours.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(|| {
                    pattern::send(&kernels, BYTES);
                    kernels.shutdown(Shutdown::Write).unwrap();
                });
                scope.spawn(|| pattern::receive(&kernels, BYTES));
                pattern::receive(Shared(&ours), BYTES);
            });
        }
        assert_content();
    });
}

#[test]
fn a_direction_that_is_closed_leaves_the_other_one_open() {
    isolated_test(|| {
        let Some((net, _)) = network_with_offloads(|tap| tap) else { return };
        let (ours, kernels) = to_kernel(&net);
        upload(&ours, &kernels, BYTES / 4);
        download(&ours, &kernels, BYTES / 4);
        let (ours, kernels) = from_kernel(&net);
        download(&ours, &kernels, BYTES / 4);
        upload(&ours, &kernels, BYTES / 4);
        assert_content();
    });
}

#[test]
fn both_directions_at_once_get_what_was_sent() {
    isolated_test(|| {
        let Some((net, _)) = network_with_offloads(|tap| tap) else { return };
        let (ours, kernels) = to_kernel(&net);
        thread::scope(|scope| {
            scope.spawn(|| upload(&ours, &kernels, BYTES));
            download(&ours, &kernels, BYTES);
        });
        assert_content();
    });
}

/// What is lost there is lost frame by frame: a super-frame is cut before.
#[test]
fn over_a_bad_cable_frames_are_those_of_a_wire_and_everything_arrives() {
    isolated_test(|| {
        let Some((net, _)) = network_with_offloads(bad_cable) else { return };
        let (ours, kernels) = to_kernel(&net);
        upload(&ours, &kernels, BYTES);
        assert!(ours.statistics().unwrap().retransmitted_segments > 0, "the cable was too good");
        let (ours, kernels) = from_kernel(&net);
        download(&ours, &kernels, BYTES);
        let counted = ours.statistics().unwrap();
        assert!(counted.out_of_order_segments > 0 && counted.duplicate_segments > 0);
        assert_eq!(counted.segments_joined, 0);
        assert!(frame_sizes(&net).iter().all(|&size| size <= WIRE));
        assert_content();
    });
}

#[test]
fn a_path_that_becomes_narrower_gets_smaller_segments() {
    isolated_test(|| {
        let Some(tap) = open_with_offloads() else { return };
        let (net, _) = network_on(tap, |tap| tap, route_behind);
        send_through_a_narrowing_path(&net, BYTES);
        assert_content();
    });
}

/// The kernel forwards between two of ours: it cuts the super-frames of the one for the other, and completes
/// their checksums, so that whatever our header says wrongly would be seen here.
#[test]
fn the_kernel_cuts_our_super_frames_for_a_host_that_takes_none() {
    isolated_test(|| {
        let Some(tap) = open_with_offloads() else { return };
        let (near, _) = network_on(tap, |tap| tap, route_behind);
        let Some(tap) = open(&TapConfig { offloads: false, ..TapConfig::default() }) else {
            return;
        };
        take_up(&tap, ROUTER);
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let mut config =
            StackConfig::new("02:00:00:00:00:09".parse().unwrap(), "10.9.0.2/24".parse().unwrap());
        config.routes.push(Route::via("10.0.0.0/24".parse().unwrap(), ROUTER));
        let far = Net::builder(tap, config).start().unwrap();
        let listener = far.bind((BEHIND, 80)).unwrap();
        let ours = near.connect((BEHIND, 80)).unwrap();
        let theirs = listener.accept().unwrap().0;
        assert_eq!(theirs.peer_addr().unwrap().ip(), OURS);
        let across = |from: &TcpStream, to| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    pattern::send(from, BYTES);
                    from.shutdown(Shutdown::Write).unwrap();
                });
                pattern::receive(to, BYTES);
            });
        };
        across(&ours, &theirs);
        // Before it sends nothing but acknowledgements, which are small.
        let sent = frame_sizes(&near)[1];
        assert!(sent > WIRE, "{sent} bytes a frame");
        across(&theirs, &ours);
        let counted = far.counters().unwrap();
        assert_eq!((counted.tcp.in_errors, counted.ip.in_header_errors), (0, 0));
        assert!(frame_sizes(&far).iter().all(|&size| size <= WIRE));
        assert_content();
    });
}
