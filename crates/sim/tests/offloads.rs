//! Tests of NICs with TSO and LRO. These offloads must not change the frames on the wire, but must
//! reduce the work of the processors.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Keep, Outcome, Scenario, TransferOptions};
use linerate_wire::{EthernetFrame, Ipv4Packet, Protocol, TcpHeader};

/// Transfers five megabytes over 100 Gb/s, and checks all invariants.
fn run(changes: &[&str], frames: bool) -> Outcome {
    let mut scenario = Scenario::named("100-gbe-pair").unwrap();
    scenario.set("transfer.bytes=5000000").unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    let outcome = scenario.blueprint().unwrap().run(1, &options, Keep { frames, timeline: None });
    let sink = outcome.program("transfer: sink").unwrap();
    assert!(outcome.complete && (sink.bytes, sink.wrong_at) == (5_000_000, None), "{changes:?}");
    outcome
}

fn gigabits(outcome: &Outcome) -> f64 {
    outcome.measure(&"goodput transfer".parse().unwrap()).unwrap() / 1e9
}

#[test]
fn segmented_frames_fit_the_wire_and_have_correct_checksums() {
    let outcome = run(&[], true);
    assert!(outcome.frames.len() > 3_000);
    for frame in &outcome.frames {
        assert!(frame.bytes.len() <= 1_514, "{} bytes", frame.bytes.len());
        let Ok(packet) = Ipv4Packet::parse(EthernetFrame::parse(&frame.bytes).unwrap().payload)
        else {
            continue;
        };
        assert_eq!(packet.header.protocol, Protocol::TCP);
        let pseudo = packet.header.pseudo_header(packet.payload.len());
        assert_eq!(TcpHeader::verify_checksum(packet.payload, pseudo), Ok(()));
    }
}

#[test]
fn without_offloads_a_processor_is_the_bottleneck() {
    let plain = gigabits(&run(&["generic.offload.tso=0", "generic.offload.lro=0"], false));
    let (cuts, both) =
        (gigabits(&run(&["generic.offload.lro=0"], false)), gigabits(&run(&[], false)));
    assert!(
        both > 2.0 * cuts && cuts > 1.1 * plain,
        "{plain} plain, {cuts} with TSO, {both} with LRO too"
    );
    let faster = gigabits(&run(&["server.cost.copy=0.05"], false));
    assert!(
        faster > 1.2 * both,
        "the copy bounds it: {both}, and {faster} with one that is twice as fast"
    );
    let sums = gigabits(&run(&["generic.offload.checksums=off"], false));
    assert!(sums < 0.9 * both, "{sums} without checksum offload");
}

#[test]
fn lro_respects_its_limit_and_losses_are_survived() {
    let joined = |limit: &str| run(&[limit], false).machines[0].nic.receive_joined;
    assert_eq!(joined("generic.offload.lro=1500"), 0, "two segments are more");
    let (two, many) = (joined("generic.offload.lro=3000"), joined("generic.offload.lro=65535"));
    assert!(two > 0 && many > two, "{two} and {many}");
    let lossy = run(&["medium.loss=0.5", "medium.reorder=0.5", "medium.reorder_delay=5"], true);
    let source = lossy.program("transfer: source").unwrap().tcp.as_ref().unwrap();
    assert!(source.statistics.retransmitted_segments > 0);
}
