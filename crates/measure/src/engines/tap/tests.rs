//! Tests of whole transfers between linerate and the kernel, in a private network namespace.

use super::*;
use crate::bench::BufferRequest;
use crate::plan::{BenchKind, Draft};
use linerate_evidence::names;
use linerate_link::namespace::{isolated_test, skip_test};
use linerate_link::tap::TapError;
use linerate_units::Duration;

/// Creates the bench; returns `None` if this machine cannot create TAP devices.
fn bench(direction: Direction) -> Option<TapBench> {
    bench_with(direction, None)
}

/// Creates the bench with offloads on, off or at their default; `None` if this machine cannot
/// create TAP devices.
fn bench_with(direction: Direction, offloads: Option<bool>) -> Option<TapBench> {
    let direction = Some(direction);
    bench_of(Draft { direction, offloads, ..Draft::of_1988(BenchKind::Tap) })
}

/// Creates the bench for a draft; returns `None` if this machine cannot create TAP devices.
fn bench_of(draft: Draft) -> Option<TapBench> {
    match TapBench::new(&Plan::new(draft).unwrap(), None) {
        Err(BenchError::Tap(error @ (TapError::NoDevice | TapError::DeviceForbidden))) => {
            skip_test(&error);
            None
        }
        bench => Some(bench.unwrap()),
    }
}

fn request(send: u64, receive: u64, bytes: u64) -> RunRequest {
    let buffer = |bytes| BufferRequest { packets: None, bytes };
    RunRequest {
        send_buffer: buffer(send),
        receive_buffer: buffer(receive),
        bytes,
        max_time: Duration::from_secs(60),
        write_size: 10_000,
        read_size: 7_000,
        verify: true,
        seed: 7,
        congestion: None,
    }
}

/// Returns the number of frames that the kernel has received from the device `name`.
fn packets_of_device(name: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let row =
        table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
    row.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Executes runs with small and large buffers, and checks each by the counters of the kernel and of
/// linerate.
fn carries(direction: Direction) {
    if let Some(bench) = bench(direction) {
        all_data_arrives(bench);
    }
}

fn all_data_arrives(mut bench: TapBench) {
    for (send, receive) in [(1_448, 1_448), (24_616, 24_616), (100_000, 100_000)] {
        let request = request(send, receive, 300_000);
        let outcome = bench.run(&request, &Interrupt::default()).unwrap();
        assert!(outcome.complete && outcome.bytes == 300_000, "{outcome:?}");
        assert_eq!(outcome.verified, Some(true));
        for end in [&outcome.counters.sender, &outcome.counters.receiver] {
            assert_eq!(end.get(names::BAD_CHECKSUMS), Some(0));
            assert_eq!(end.get("bad_segments"), Some(0));
        }
    }
    let floor =
        bench.floor(&request(24_616, 24_616, 1_000_003), &Interrupt::default()).unwrap().unwrap();
    assert!(floor.bytes == 1_000_003 && floor.time > Duration::ZERO);
    bench.run(&request(24_616, 24_616, 50_000), &Interrupt::default()).unwrap();
}

#[test]
fn data_reaches_the_kernel() {
    isolated_test(|| carries(Direction::ToKernel));
}

#[test]
fn data_arrives_from_the_kernel() {
    isolated_test(|| carries(Direction::FromKernel));
}

#[test]
fn a_tun_device_carries_packets_of_both_ip_versions_with_and_without_offloads() {
    isolated_test(|| {
        for direction in [Direction::ToKernel, Direction::FromKernel] {
            for (family, offloads) in [
                (Family::Ipv4, false),
                (Family::Ipv6, false),
                (Family::Ipv4, true),
                (Family::Ipv6, true),
            ] {
                let bench = bench_of(Draft {
                    direction: Some(direction),
                    family: Some(family),
                    offloads: Some(offloads),
                    ..Draft::of_1988(BenchKind::Tun)
                });
                let Some(mut bench) = bench else { return };
                let facts = bench.facts();
                assert!(facts.description.ends_with("across a TUN device"));
                assert_eq!(facts.framing.overhead, 0);
                if !offloads {
                    all_data_arrives(bench);
                    continue;
                }
                let request = request(200_000, 200_000, 2_000_000);
                let outcome = bench.run(&request, &Interrupt::default()).unwrap();
                assert_eq!((outcome.complete, outcome.verified), (true, Some(true)));
                let packets = packets_of_device(bench.tap.as_ref().unwrap().interface().name());
                assert!(packets < 2_000_000 / 1_448 / 2, "{direction} {family}: {packets} packets");
            }
        }
    });
}

#[test]
fn gso_frames_cross_the_device_if_requested() {
    isolated_test(|| {
        for (wanted, told) in [(None, "off"), (Some(false), "off"), (Some(true), "on")] {
            let Some(mut bench) = bench_with(Direction::ToKernel, wanted) else { return };
            assert_eq!(bench.facts().settings["link.offloads"], told);
            let request = request(200_000, 200_000, 2_000_000);
            let outcome = bench.run(&request, &Interrupt::default()).unwrap();
            assert_eq!((outcome.complete, outcome.verified), (true, Some(true)));
            let packets = packets_of_device(bench.tap.as_ref().unwrap().interface().name());
            let segments = 2_000_000 / 1_448;
            assert_eq!(
                packets < segments / 2,
                wanted == Some(true),
                "{packets} packets of {segments} segments"
            );
            let floor = bench.floor(&request, &Interrupt::default()).unwrap();
            assert_eq!(floor.is_none(), wanted == Some(true));
        }
    });
}

#[test]
fn runs_end_after_their_maximum_time_and_on_interrupt_in_both_directions() {
    isolated_test(|| {
        for direction in [Direction::ToKernel, Direction::FromKernel] {
            let Some(mut endless) = bench(direction) else { return };
            let late = RunRequest {
                max_time: Duration::from_millis(30),
                ..request(5_792, 5_792, u64::MAX)
            };
            let outcome = endless.run(&late, &Interrupt::default()).unwrap();
            assert!(!outcome.complete && outcome.time >= late.max_time, "{direction}: {outcome:?}");
            assert_eq!(outcome.verified, Some(true));
            // The previous run was incomplete. It must not have broken the bench, so another run
            // must be complete.
            assert!(
                endless
                    .run(&request(5_792, 5_792, 20_000), &Interrupt::default())
                    .unwrap()
                    .complete
            );
            let raised = Interrupt::default();
            raised.raise();
            let result = endless.run(&request(5_792, 5_792, u64::MAX), &raised);
            assert!(matches!(result, Err(BenchError::Interrupted)), "{direction}: {result:?}");
        }
    });
}
