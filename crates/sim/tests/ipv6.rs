//! Scenarios over IPv6: frames, routers, queues, offloads and generators.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Activity, Captured, Keep, Measure, Outcome, Scenario, Tick, Window};
use linerate_sim::{Span, TransferOptions};

const TIMELINE: Window = Window { from: Tick::ZERO, until: Tick::NEVER };

/// Runs a built-in scenario over IPv6 with changes and all checks.
fn run(name: &str, changes: &[&str], keep: Keep) -> Outcome {
    let mut scenario = Scenario::named(name).unwrap();
    for change in ["family=ipv6"].iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    scenario.blueprint().unwrap().run(1988, &options, keep)
}

fn measure(outcome: &Outcome, measure: &str) -> f64 {
    outcome.measure(&measure.parse::<Measure>().unwrap()).unwrap()
}

fn ether_type(frame: &Captured) -> [u8; 2] {
    [frame.bytes[12], frame.bytes[13]]
}

#[test]
fn a_transfer_has_the_goodput_of_its_header_arithmetic() {
    for (name, changes, payload, rate) in [
        ("10-gbe-pair-ipv6", ["transfer.bytes=20000000", "limit.time=90"], 1_428.0, 1e10),
        ("wan-tail-drop", ["limit.time=30", "limit.time=30"], 1_428.0, 2e7),
    ] {
        let outcome = run(name, &changes, Keep::default());
        let programs = if name.starts_with("wan") { "one other" } else { "transfer" };
        let share = measure(&outcome, &format!("goodput {programs}")) / rate;
        // The expected share of the bit rate: payload per full frame, divided by all bytes for
        // which the frame occupies the wire. These are Ethernet header, IP packet, check sequence,
        // and preamble with gap. The payload is the packet without its IPv6 and TCP headers.
        let expected = payload / (14.0 + 1_500.0 + 4.0 + 20.0);
        assert!((expected * 0.98..=expected).contains(&share), "{name}: {share}, not {expected}");
    }
}

#[test]
fn full_frames_have_a_header_of_forty_bytes_and_the_mss_is_smaller() {
    let keep = Keep { frames: true, timeline: None };
    let outcome = run("sun-3-60-to-3-60", &["transfer.bytes=100000", "noise.rate=0"], keep);
    let sink = outcome.program("transfer: sink").unwrap();
    assert_eq!((sink.complete, sink.bytes, sink.wrong_at), (true, 100_000, None));
    let longest = outcome.frames.iter().map(|frame| frame.bytes.len()).max().unwrap();
    assert_eq!(longest, 14 + 40 + 20 + 1_440, "4.3BSD has no TCP options in data segments");
    assert!(outcome.frames.iter().all(|frame| ether_type(frame) == [0x86, 0xdd]));
    let syn = outcome.frames.iter().find(|frame| frame.bytes[20] == 6).unwrap();
    assert_eq!(syn.bytes[14 + 40 + 20..][..4], [2, 4, 5, 160], "MSS 1,440");
}

#[test]
fn routers_forward_decrement_the_hop_limit_and_answer_solicitations() {
    let keep = Keep { frames: true, timeline: None };
    let outcome = run("wan-two-routers", &["limit.time=3"], keep);
    for relay in &outcome.relays {
        assert!(relay.counted.forwarded > 1_000, "{relay:?}");
        assert!(relay.counted.answered > 0, "neighbour solicitations are answered: {relay:?}");
        assert_eq!(relay.counted.unreachable, 0, "{relay:?}");
    }
    let wires: Vec<&str> = outcome.wires.iter().map(|wire| wire.name.as_str()).collect();
    let between = wires.iter().position(|name| *name == "between").unwrap();
    let tcp = outcome
        .frames
        .iter()
        .filter(|frame| usize::from(frame.wire) == between && ether_type(frame) == [0x86, 0xdd]);
    let mut limits: Vec<u8> = tcp.map(|frame| frame.bytes[14 + 7]).collect();
    limits.sort_unstable();
    limits.dedup();
    assert_eq!(limits, [63], "each packet has passed one router");
    assert!(measure(&outcome, "goodput left right") > 5e6);
}

#[test]
fn queues_mark_and_separate_flows() {
    let outcome = run("wan-fq-codel", &["limit.time=20"], Keep::default());
    assert!(measure(&outcome, "marked") > 0.0);
    assert!(measure(&outcome, "waited") < 20e9, "{} ps", measure(&outcome, "waited"));
    assert!(measure(&outcome, "larger-share one other") < 0.55);
}

#[test]
fn offloads_segment_and_merge() {
    let small = ["transfer.bytes=200000000"];
    let merged = measure(&run("100-gbe-pair", &small, Keep::default()), "goodput transfer");
    let off = ["transfer.bytes=50000000", "receiver.nic.offload.lro=0"];
    let plain = measure(&run("100-gbe-pair", &off, Keep::default()), "goodput transfer");
    assert!(merged > 2.0 * plain, "{merged} with LRO, {plain} without");
}

#[test]
fn shards_of_a_host_share_its_connections() {
    let outcome = run("rss", &["limit.time=0.01"], Keep::default());
    let busy = |outcome: &Outcome| {
        let receiver = outcome.machines.iter().find(|machine| machine.processors.len() > 1);
        let busy = receiver.unwrap().processors.iter().filter(|one| one.busy > Span::ZERO);
        busy.count()
    };
    assert!(busy(&outcome) > 1);
}

#[test]
fn a_timeline_labels_segments() {
    let keep = Keep { frames: false, timeline: Some(TIMELINE) };
    let outcome = run("sun-3-60-to-3-60", &["transfer.bytes=20000"], keep);
    let timeline = outcome.timeline.unwrap();
    let held: Vec<_> = timeline.lanes.iter().flat_map(|lane| &lane.held).collect();
    let labels =
        |activity| held.iter().filter(|held| held.by == activity && held.segment.is_some()).count();
    assert!(labels(Activity::Data) >= 14, "{} data segments", labels(Activity::Data));
    assert!(labels(Activity::Acknowledgement) > 0);
}

#[test]
fn nfs_answers_are_fragmented() {
    let keep = Keep { frames: true, timeline: None };
    let outcome = run("nfs-8k-8-bit", &["reader.bytes=81920"], keep);
    let reader = outcome.program("reader").unwrap();
    assert_eq!((reader.complete, reader.bytes), (true, 81_920));
    let fragments = outcome.frames.iter().filter(|frame| frame.bytes[20] == 44);
    let lengths: Vec<usize> = fragments.map(|frame| frame.bytes.len()).collect();
    assert_eq!(lengths.len(), 10 * 6);
    // The answers contain 81,920 bytes of data in 10 datagrams and 60 fragments. Each datagram has
    // headers of 108 bytes: 8 of UDP, and 100 of RPC and NFS. Each fragment has 14 bytes of
    // Ethernet, and 48 of IPv6.
    assert_eq!(lengths.iter().sum::<usize>(), 81_920 + 10 * 108 + 60 * (14 + 48));
}

#[test]
fn a_scenario_that_cannot_run_over_ipv6_is_refused_in_one_line() {
    let refused = |name: &str, changes: &[&str]| {
        let mut scenario = Scenario::named(name).unwrap();
        let changed = changes.iter().try_for_each(|change| scenario.set(change));
        let refused = changed.and_then(|()| scenario.blueprint().map(drop));
        let line = refused.unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let line = refused("sun-3-60-to-3-60", &["family=ipv6", "tahoe.mtu=576"]);
    assert!(line.contains("IPv6 needs 1280"), "{line}");
    let line = refused("10-gbe-pair", &["family=ipv5"]);
    assert!(
        line.contains("there is no IP version `ipv5`") && line.contains("ipv4, ipv6"),
        "{line}"
    );
}

#[test]
fn addresses_of_either_version_can_be_set() {
    let parse = |address: &str, family: &str| {
        let text = Scenario::text("10-gbe-pair").unwrap();
        let text = text.replace("title =", &format!("family = \"{family}\"\ntitle ="));
        let text = text.replacen("nic =", &format!("address = \"{address}\"\nnic ="), 1);
        let scenario = Scenario::parse("s", &text, &|_| Err(String::new())).unwrap();
        scenario.blueprint().map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(parse("fd00::77", "ipv6"), Ok(()));
    assert_eq!(parse("10.0.0.77", "ipv4"), Ok(()));
    let other = parse("10.0.0.77", "ipv6").unwrap_err();
    assert!(other.contains("cannot have the address 10.0.0.77: its network is fd00::/64"));
    assert!(parse("fd00:0:0:1::7", "ipv6").unwrap_err().contains("its network is fd00::/64"));
}
