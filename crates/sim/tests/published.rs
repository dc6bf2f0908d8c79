//! Compares simulated runs with published figures, and checks that effects known from the
//! literature occur in the simulator.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Keep, Measure, Outcome, Scenario, TransferOptions};
use linerate_units::Span;

/// Runs a built-in scenario with changes, and checks all invariants.
fn run(scenario: &str, changes: &[&str]) -> Outcome {
    let mut scenario = Scenario::named(scenario).unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { checks: true, ..TransferOptions::default() };
    scenario.blueprint().unwrap().run(1988, &options, Keep::default())
}

fn measure(outcome: &Outcome, measure: &str) -> f64 {
    outcome.measure(&measure.parse::<Measure>().unwrap()).unwrap()
}

/// Returns the throughput of an Ethernet with this many saturating stations, in Mb/s.
fn carried(scenario: &str, hosts: u32) -> f64 {
    let hosts = format!("hosts.stations.count={hosts}");
    measure(&run(scenario, &[&hosts, "load.time=1"]), "carried") / 1e6
}

#[test]
fn long_frames_fill_a_saturated_ethernet_and_short_ones_do_not() {
    for hosts in [2, 5, 24] {
        let (long, short) = (carried("saturated-long", hosts), carried("saturated-short", hosts));
        assert!(long > 9.0, "{hosts} hosts, long frames: {long} Mb/s");
        assert!(
            short < 0.85 * long,
            "{hosts} hosts: {short} Mb/s of short frames, {long} of long ones"
        );
        let mixed = carried("saturated-mixed", hosts);
        assert!(
            mixed > 1.1 * short,
            "{hosts} hosts: one long frame in eight lifts {short} to {mixed} Mb/s only"
        );
    }
}

#[test]
fn measures_of_a_run_without_data_have_no_value() {
    let measured = |outcome: &Outcome, what: &str| outcome.measure(&what.parse().unwrap());
    // The run ends after 6 ms, when the transfers `first` and `second` are open but have received
    // no data. Their throughput is zero. Measures that would divide by zero have no value.
    let early = run("sun-3-50-four", &["limit.time=0.006"]);
    assert_eq!(measured(&early, "goodput first second"), Some(0.0));
    assert_eq!(measured(&early, "larger-share first second"), None);
    assert_eq!(measured(&early, "time first 1000000"), None);
    let blueprint = Scenario::named("sun-3-50-four").unwrap().blueprint().unwrap();
    let options = TransferOptions { limit: Some(Span::ZERO), ..TransferOptions::default() };
    assert_eq!(measured(&blueprint.run(1988, &options, Keep::default()), "carried"), None);
}

#[test]
fn stations_share_a_hub_like_a_cable() {
    let text = Scenario::text("saturated-long").unwrap().replace("ethernet-10", "hub-10");
    let mut scenario = Scenario::parse("s", &text, &|_| Err(String::new())).unwrap();
    scenario.set("load.time=1").unwrap();
    let options = TransferOptions { checks: true, ..TransferOptions::default() };
    let outcome = scenario.blueprint().unwrap().run(1, &options, Keep::default());
    assert!(measure(&outcome, "carried") > 9e6);
    assert_eq!(outcome.wires[0].counted.late, 0, "an arm of 161 m is not too long");
}

#[test]
fn an_82586_keeps_up_with_a_paced_sender() {
    let few = ["transfer.bytes=100000"];
    let rate = |scenario: &str| measure(&run(scenario, &few), "goodput transfer");
    assert!(rate("paced-into-82586") > 5.0 * rate("82586-receiver"));
}

/// Runs a transfer between two LANCE Ethernet controllers. On the machine of host `host`, a disk
/// controller competes for the bus, and has it for `hold` microseconds each time.
fn beside_a_disk(host: &str, hold: &str) -> Outcome {
    let (others, hold) =
        (format!("{host}.machine.bus.others=1"), format!("{host}.machine.bus.hold={hold}"));
    let quiet = ["transfer.bytes=300000", "receiver.machine.bus.others=0"];
    run("lance-on-busy-bus", &[quiet[0], quiet[1], &others, &hold])
}

#[test]
fn a_fifo_covers_a_busy_bus_as_long_as_its_bytes_last() {
    let lost = |hold| measure(&beside_a_disk("receiver", hold), "lost receiver");
    assert_eq!((lost("20"), lost("25.5")), (0.0, 0.0));
    assert!(lost("26.5") > 0.0 && lost("40") > lost("26.5"));
}

#[test]
fn a_switch_forwards_no_truncated_frame() {
    let text = Scenario::text("lance-on-busy-bus").unwrap().replace("\"ethernet-10\"", "\"wan\"");
    let mut scenario = Scenario::parse("s", &text, &|_| Err(String::new())).unwrap();
    let changes = [
        "wan.rate=0.01",
        "transfer.bytes=300000",
        "sender.machine.bus.others=1",
        "sender.machine.bus.hold=40",
        "receiver.machine.bus.others=0",
    ];
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    let outcome = scenario.blueprint().unwrap().run(1, &options, Keep::default());
    let [receiver, sender] = ["receiver", "sender"]
        .map(|name| outcome.machines.iter().find(|machine| machine.name == name).unwrap().nic);
    assert!(outcome.complete && sender.transmit_fifo > 0);
    assert_eq!(
        (outcome.wires[0].counted.discarded, receiver.receive_errors),
        (sender.transmit_fifo, 0)
    );
}

#[test]
fn a_frame_aborted_by_an_underrun_is_retransmitted() {
    let bears = beside_a_disk("sender", "25");
    let breaks = beside_a_disk("sender", "40");
    let nic = |outcome: &Outcome, name: &str| {
        outcome.machines.iter().find(|machine| machine.name == name).unwrap().nic
    };
    let sent_again = |outcome: &Outcome| {
        let source = outcome.program("transfer: source").unwrap().tcp.clone();
        source.unwrap().statistics.retransmitted_segments
    };
    assert_eq!((nic(&bears, "sender").transmit_fifo, sent_again(&bears)), (0, 0));
    let sender = nic(&breaks, "sender");
    assert!(sender.transmit_fifo > 0 && sender.transmit_errors == sender.transmit_fifo);
    assert_eq!(
        nic(&breaks, "receiver").receive_errors,
        sender.transmit_fifo,
        "their check sequence is wrong"
    );
    assert!(sent_again(&breaks) > 0 && breaks.complete);
    let changes = [
        "sender.machine.bus.others=1",
        "sender.machine.bus.hold=40",
        "receiver.machine.bus.others=0",
    ];
    let patient = [
        &changes[..],
        &["transfer.bytes=300000", "lance.transmit.retries=16", "lance.transmit.restart=0"],
    ];
    let patient = run("lance-on-busy-bus", &patient.concat());
    let broken = nic(&patient, "sender").transmit_fifo;
    assert!(broken > 0, "each arrives damaged, even if it is repeated at once");
    assert_eq!(nic(&patient, "receiver").receive_errors, broken);
    assert_eq!(sent_again(&patient), 0, "the chip has repeated the frames");
}

#[test]
fn every_published_figure_can_be_measured() {
    for name in Scenario::names() {
        let mut scenario = Scenario::named(name).unwrap();
        for change in ["transfer.bytes=200000", "limit.time=3", "load.time=0.5"] {
            let _ = scenario.set(change);
        }
        let blueprint = scenario.blueprint().unwrap();
        let outcome = blueprint.run(7, &TransferOptions::default(), Keep::default());
        for published in blueprint.published() {
            assert!(published.ours(&outcome).is_some(), "{name}: {} is not measured", published.id);
            let [low, high] = published.figure.range;
            assert!(low <= published.figure.value && published.figure.value <= high);
        }
    }
}

#[test]
fn codel_keeps_the_queue_short_at_full_throughput() {
    let of = |scenario: &str| {
        let outcome = run(scenario, &["limit.time=20"]);
        (measure(&outcome, "waited") / 1e9, measure(&outcome, "goodput one other"))
    };
    let (full, full_rate) = of("wan-tail-drop");
    for scenario in ["wan-codel", "wan-fq-codel", "wan-red"] {
        let (waited, rate) = of(scenario);
        assert!(waited < full / 4.0, "{scenario}: {waited} ms, tail drop {full} ms");
        assert!(rate > 0.75 * full_rate, "{scenario}: {rate} b/s, tail drop {full_rate} b/s");
    }
}

#[test]
fn unknown_measures_and_impossible_queues_are_refused() {
    let says = |scenario: &str, from: &str, to: &str, line: &str| {
        let text = Scenario::text(scenario).unwrap();
        assert!(text.contains(from));
        let parsed = Scenario::parse("s", &text.replace(from, to), &|_| Err(String::new()));
        let error =
            parsed.and_then(|scenario| scenario.blueprint().map(|_| ())).unwrap_err().to_string();
        assert!(error.contains(line) && !error.contains('\n'), "{error}");
    };
    says("wan-red", "\"waited\"", "\"weighted\"", "there is no measure `weighted`");
    says("saturated-long", "on = \"stations\"", "on = \"unknown\"", "there is no host `unknown`");
    says(
        "wan-codel",
        "limit]",
        "noise]\nrate = { value = 1, unit = \"kb/s\", range = [0, 1], source = \"x\" }\n\
         frame = { value = 64, unit = \"B\", range = [64, 64], source = \"x\" }\n\
         position = { value = 0, unit = \"m\", range = [0, 1], source = \"x\" }\n[limit]",
        "needs a bus",
    );
    let mut red = Scenario::named("wan-red").unwrap();
    red.set("medium.queue.low=70").unwrap();
    assert!(red.blueprint().unwrap_err().to_string().contains("make low less than high"));
}

#[test]
fn header_compression_reduces_a_typed_character_to_four_bytes() {
    let bytes =
        |change| measure(&run("serial-typist", &["typing.characters=200", change]), "frame-size");
    let (compressed, whole) = (bytes("medium.compression=on"), bytes("medium.compression=off"));
    assert!((4.0..4.6).contains(&compressed), "{compressed}");
    assert!((40.5..41.5).contains(&whole), "{whole}");
    // If the IP identification does not grow by one with each packet, the compressed header
    // contains it in three more bytes: seven bytes instead of four (RFC 1144 §3.2.2).
    let uncounted = bytes("tahoe.identification=off");
    assert!((7.0..7.9).contains(&uncounted), "{uncounted}");
}

#[test]
fn a_blast_is_acknowledged_once_for_32_frames() {
    let outcome = run("blast-3-50-to-3-180", &["noise.rate=0", "blast.bytes=100000"]);
    let report = outcome.program("blast").unwrap();
    assert!(outcome.complete && report.complete);
    assert_eq!(
        (report.bytes, report.counted.clone()),
        (100_000, vec![("blasts", 4), ("repeated", 0)])
    );
    assert_eq!(outcome.wires[0].counted.frames, 98 + 4);
}

#[test]
fn a_vms_host_repeats_nothing_on_an_idle_wire_and_accounts_for_all_messages() {
    let quiet = run(
        "vms-linear",
        &["first.bytes=1", "second.bytes=1", "noise.rate=0", "vms.time=10", "limit.time=10"],
    );
    let count = |outcome: &Outcome, what: &str| measure(outcome, &format!("counted vms {what}"));
    assert_eq!((count(&quiet, "repeated"), count(&quiet, "refused")), (0.0, 0.0));
    assert!(count(&quiet, "acknowledged") >= 20.0 * 48.0, "{}", count(&quiet, "acknowledged"));
    let busy = run("vms-linear", &["limit.time=20"]);
    let open = count(&busy, "messages") - count(&busy, "acknowledged");
    assert!(
        (0.0..=20.0 * 8.0).contains(&open),
        "no more than the windows are unacknowledged: {open}"
    );
    let small = run("vms-linear", &["limit.time=20", "vms.pool=1000"]);
    assert!(count(&small, "refused") > 0.0 && count(&small, "pool") <= 1_000.0);
}
