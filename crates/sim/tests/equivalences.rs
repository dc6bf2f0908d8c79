//! Pairs of scenarios that must have equal results, with times equal to the picosecond.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Captured, Keep, Outcome, Scenario, TransferOptions};

/// Runs the scenario of the first column of the table of 1988, with changes.
fn run(changes: &[&str]) -> Outcome {
    let mut scenario = Scenario::named("sun-3-60-to-3-60").unwrap();
    let quiet = ["transfer.bytes=200000", "noise.rate=0", "receiver.position=0"];
    quiet.iter().chain(changes).for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    let outcome =
        scenario.blueprint().unwrap().run(1, &options, Keep { frames: true, timeline: None });
    assert!(outcome.complete, "{changes:?}");
    outcome
}

/// Runs the scenario of the first column of the table of 1988 on a full-duplex cable. The cable
/// replaces the Ethernet and has the Ethernet's bit rate, but no propagation delay and no
/// background traffic.
fn run_on_cable(changes: &[&str]) -> Outcome {
    let text = Scenario::text("sun-3-60-to-3-60").unwrap().replace("ethernet-10", "link-1g");
    let (before, noise) = text.split_once("[noise]").unwrap();
    let (_, limit) = noise.split_once("[limit]").unwrap();
    let text = format!("{before}[limit]{limit}");
    let mut scenario =
        Scenario::parse("cable", &text, &|file| Err(format!("{file} is not there"))).unwrap();
    let same = ["transfer.bytes=200000", "link-1g.rate=10", "link-1g.delay=0"];
    same.iter().chain(changes).for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    scenario.blueprint().unwrap().run(1, &options, Keep { frames: true, timeline: None })
}

/// Socket buffers of one packet. The two hosts then send alternately: a data segment, then its
/// acknowledgement. They never contend for the Ethernet.
const IN_TURN: [&str; 2] = ["transfer.send_buffer=1460", "transfer.receive_buffer=1460"];

fn last(frames: &[Captured]) -> u64 {
    frames.last().unwrap().at.as_picos()
}

#[test]
fn a_bus_without_contention_equals_a_cable() {
    let (bus, cable) = (run(&IN_TURN), run_on_cable(&IN_TURN));
    assert_eq!(bus.wires[0].counted.collisions, 0);
    assert!(bus.frames.len() > 250);
    assert_eq!(bus.frames, cable.frames);
}

#[test]
fn a_longer_cable_takes_longer_and_losses_are_retransmitted() {
    let near = run_on_cable(&IN_TURN);
    let far = run_on_cable(&[IN_TURN[0], IN_TURN[1], "link-1g.delay=1000"]);
    assert!(last(&far.frames) > last(&near.frames) + 250 * 1_000_000_000);
    let lossy = run_on_cable(&["link-1g.loss=10", "link-1g.corruption=5"]);
    let source = lossy.program("transfer: source").unwrap().tcp.as_ref().unwrap();
    assert!(source.statistics.retransmitted_segments > 0);
    assert!(lossy.machines.iter().any(|machine| machine.nic.receive_errors > 0));
    assert_eq!(lossy.program("transfer: sink").unwrap().wrong_at, None);
    let shuffled = run_on_cable(&["link-1g.reorder=5", "link-1g.reorder_delay=5000"]);
    let sink = shuffled.program("transfer: sink").unwrap();
    assert!(sink.complete && sink.tcp.as_ref().unwrap().statistics.out_of_order_segments > 0);
}

#[test]
fn a_ring_of_one_descriptor_has_no_chained_frames() {
    let alone = run(&["lance.transmit.ring=1", "lance.transmit.chained=2"]);
    let other = run(&["lance.transmit.ring=1", "lance.transmit.chained=150"]);
    assert_eq!(alone.frames, other.frames);
    let chained = run(&["lance.transmit.ring=16", "lance.transmit.chained=2"]);
    assert_ne!(chained.frames, alone.frames);
}

#[test]
fn moderation_by_zero_interrupts_for_each_completion() {
    let plain = run(&[]);
    let each = run(&["lance.interrupt.delay=0", "lance.interrupt.frames=256"]);
    assert_eq!(plain.frames, each.frames);
    let first = run(&["lance.interrupt.delay=1000", "lance.interrupt.frames=1"]);
    assert_eq!(plain.frames, first.frames);
    let moderated = run(&["lance.interrupt.delay=1000", "lance.interrupt.frames=8"]);
    let interrupts = |outcome: &Outcome| {
        outcome.machines.iter().map(|machine| machine.nic.interrupts).sum::<u64>()
    };
    assert!(interrupts(&moderated) < interrupts(&plain));
}

#[test]
fn an_infinitely_fast_bus_costs_no_processor_time() {
    let infinite = run(&["lance.dma.cycle=0", "sun-3-60.bus.processor=100"]);
    let unwanted = run(&["lance.dma.cycle=0", "sun-3-60.bus.processor=50"]);
    assert_eq!(infinite.frames, unwanted.frames);
    let contended = run(&["lance.dma.cycle=600"]);
    assert!(last(&infinite.frames) < last(&contended.frames));
}

#[test]
fn a_machine_based_on_another_of_equal_speed_equals_it() {
    let scale = run(&["sender.machine=sun-3-50", "sun-3-50.relative=1"]);
    let plain = run(&["sun-3-60.relative=1"]);
    assert_eq!(scale.frames, plain.frames);
}
