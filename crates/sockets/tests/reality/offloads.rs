//! A TAP device with offloads. GSO frames of up to 64 KiB pass between the kernel and our host. If
//! the path behind the device does not carry them, they are segmented.

use crate::kernel::{
    KERNEL, OURS, WIRE, assert_content, configure_kernel_end, frame_sizes, network_on,
    network_with_offloads, open, open_with_offloads,
};
use crate::paths::{BEHIND, ROUTER, route_behind, send_through_a_narrowing_path};
use crate::pattern;
use crate::transfers::{download, from_kernel, impaired_link, to_kernel, upload};
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
fn the_kernel_sends_us_gso_frames() {
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
fn we_send_the_kernel_gso_frames() {
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

/// A wrapper of a stream that reads and writes without copying ([`TcpStream::read_shared`] and
/// [`TcpStream::write_shared`]).
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

/// Transfers data in both directions at once, on a device with offloads and on one without. Our
/// host reads and writes without copying.
#[test]
fn zero_copy_reads_and_writes_carry_all_data() {
    isolated_test(|| {
        for offloads in [true, false] {
            let config = TapConfig { offloads, ..TapConfig::default() };
            let Some(tap) = open(&config) else { return };
            configure_kernel_end(&tap, KERNEL);
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
fn a_closed_direction_leaves_the_other_open() {
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
fn simultaneous_transfers_in_both_directions_arrive() {
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

/// The impaired link is meant to lose frames of Ethernet size. If it got GSO frames, it would lose
/// up to 64 KiB at once. So GSO frames must be segmented before they enter this link.
#[test]
fn gso_frames_are_segmented_before_an_impaired_link() {
    isolated_test(|| {
        let Some((net, _)) = network_with_offloads(impaired_link) else { return };
        let (ours, kernels) = to_kernel(&net);
        upload(&ours, &kernels, BYTES);
        assert!(ours.statistics().unwrap().retransmitted_segments > 0, "no segment was lost");
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
fn a_shrinking_path_mtu_reduces_the_segment_size() {
    isolated_test(|| {
        let Some(tap) = open_with_offloads() else { return };
        let (net, _) = network_on(tap, |tap| tap, route_behind);
        send_through_a_narrowing_path(&net, BYTES);
        assert_content();
    });
}

/// The kernel forwards between two of our hosts, one with offloads and one without. It segments the
/// GSO frames of the first host and completes their checksums, for which it uses our GSO headers.
/// So an error in such a header causes an error at the second host.
#[test]
fn the_kernel_segments_our_gso_frames_for_a_host_without_offloads() {
    isolated_test(|| {
        let Some(tap) = open_with_offloads() else { return };
        let (near, _) = network_on(tap, |tap| tap, route_behind);
        let Some(tap) = open(&TapConfig { offloads: false, ..TapConfig::default() }) else {
            return;
        };
        configure_kernel_end(&tap, ROUTER);
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
        // `sent` is the average size of all frames that `near` has sent, including the small ones
        // before this upload. It exceeds the size of an Ethernet frame, so the upload must have
        // used GSO.
        let sent = frame_sizes(&near)[1];
        assert!(sent > WIRE, "{sent} bytes a frame");
        across(&theirs, &ours);
        let counted = far.counters().unwrap();
        assert_eq!((counted.tcp.in_errors, counted.ip.in_header_errors), (0, 0));
        assert!(frame_sizes(&far).iter().all(|&size| size <= WIRE));
        assert_content();
    });
}
