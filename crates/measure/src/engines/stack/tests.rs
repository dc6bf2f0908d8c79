//! Tests of whole transfers between two linerate hosts over the memory link.

use super::*;
use crate::bench::BufferRequest;
use crate::plan::{BenchKind, Draft};
use linerate_evidence::names;
use linerate_units::Duration;

fn bench(change: impl FnOnce(&mut Draft)) -> StackBench {
    let mut draft = Draft::of_1988(BenchKind::Stack);
    change(&mut draft);
    StackBench::new(&Plan::new(draft).unwrap(), None).unwrap()
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

fn run(bench: &mut StackBench, request: &RunRequest) -> RunOutcome {
    let outcome = bench.run(request, &Interrupt::default()).unwrap();
    assert!(outcome.complete);
    assert_eq!((outcome.bytes, outcome.verified), (request.bytes, Some(true)));
    outcome
}

#[test]
fn all_data_arrives_with_any_buffers() {
    let mut bench = bench(|_| ());
    for (send, receive) in
        [(1_448, 1_448), (1_448, 24_616), (24_616, 1_448), (24_616, 24_616), (1, 300), (700, 5_000)]
    {
        run(&mut bench, &request(send, receive, 50_000));
    }
    run(&mut bench, &request(1 << 20, 1 << 20, 8 << 20));
}

#[test]
fn all_profiles_and_mtus_carry_the_data() {
    for profile in ["modern", "bsd_tahoe", "bsd_reno"] {
        run(
            &mut bench(|draft| draft.profile = Some(profile.to_owned())),
            &request(11_680, 11_680, 500_000),
        );
    }
    for mtu in [128, 576, 9_000, 65_535] {
        run(&mut bench(|draft| draft.mtu = mtu), &request(65_000, 65_000, 500_000));
    }
}

#[test]
fn an_impossible_mtu_is_named() {
    let error = no_link(MemoryError::Mtu(70_000), 70_000).to_string();
    assert!(error.starts_with("an MTU of 70000 bytes cannot be used here: "), "{error}");
}

#[test]
fn a_transfer_without_loss_takes_the_fast_path_at_both_ends_without_timeouts() {
    let outcome = run(&mut bench(|_| ()), &request(24_616, 24_616, 8 << 20));
    for end in [&outcome.counters.sender, &outcome.counters.receiver] {
        let share = end.fast_path.as_ref().unwrap().share().unwrap();
        assert!(share >= 0.95, "{share}: {end:?}");
        for counter in [names::RETRANSMISSION_TIMEOUTS, names::BAD_CHECKSUMS, names::DROPPED_FRAMES]
        {
            assert_eq!(end.get(counter), Some(0), "{counter}");
        }
    }
}

#[test]
fn all_data_arrives_despite_impairments() {
    let impair = "loss=1%,duplicate=1%,reorder=1%,corrupt=0.5%,delay=100us,jitter=50us";
    let mut bench = bench(|draft| draft.impair = Some(impair.to_owned()));
    let outcome = run(&mut bench, &request(100_000, 100_000, 1 << 20));
    assert!(outcome.counters.sender.get(names::RETRANSMITTED_SEGMENTS) > Some(0));
    assert!(outcome.counters.receiver.get(names::BAD_CHECKSUMS) > Some(0));
}

#[test]
fn a_run_ends_after_its_maximum_time() {
    let late =
        RunRequest { max_time: Duration::from_millis(20), ..request(1_448, 1_448, u64::MAX) };
    let outcome = bench(|_| ()).run(&late, &Interrupt::default()).unwrap();
    assert!(!outcome.complete && outcome.time >= late.max_time, "{outcome:?}");
    assert_eq!(outcome.verified, Some(true));
}

#[test]
fn an_interrupt_ends_a_run_and_a_floor() {
    let raised = Interrupt::default();
    raised.raise();
    let endless = request(1_448, 1_448, u64::MAX);
    let mut bench = bench(|_| ());
    assert!(matches!(bench.run(&endless, &raised), Err(BenchError::Interrupted)));
    assert!(matches!(bench.floor(&endless, &raised), Err(BenchError::Interrupted)));
}

#[test]
fn the_floor_carries_the_same_bytes() {
    for verify in [true, false] {
        let request = RunRequest { verify, ..request(24_616, 24_616, 1_000_003) };
        let floor = bench(|_| ()).floor(&request, &Interrupt::default()).unwrap().unwrap();
        assert_eq!(floor.bytes, 1_000_003);
        assert!(floor.time > Duration::ZERO);
    }
}

#[test]
fn frames_are_captured_with_an_interface_for_each_run() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let plan = Plan::new(Draft::of_1988(BenchKind::Stack)).unwrap();
    let capture = CaptureWriter::create(file.path()).unwrap();
    let mut bench = StackBench::new(&plan, Some(capture)).unwrap();
    run(&mut bench, &request(5_792, 5_792, 20_000));
    run(&mut bench, &request(5_792, 5_792, 20_000));
    drop(bench);
    let text = std::fs::read(file.path()).unwrap();
    assert!(text.len() > 40_000, "{} bytes", text.len());
}
