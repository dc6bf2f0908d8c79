//! What a simulated world costs: events for a frame, which are the same on every machine, however many hosts there are.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Keep, Outcome, Scenario, TransferOptions};

fn run(scenario: &str, changes: &[String]) -> Outcome {
    let mut scenario = Scenario::named(scenario).unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    scenario.blueprint().unwrap().run(1988, &TransferOptions::default(), Keep::default())
}

fn received(outcome: &Outcome) -> u64 {
    outcome.machines.iter().map(|machine| machine.card.receive_packets).sum()
}

fn ratio(events: u64, frames: u64) -> f64 {
    f64::from(u32::try_from(events).unwrap()) / f64::from(u32::try_from(frames).unwrap())
}

/// Events for a frame more, when each of so many pairs on one switch moves twice as much.
fn of_crowd(hosts: u64) -> f64 {
    let crowd = |bytes: u64| {
        let pairs = ["senders", "receivers"].map(|group| format!("hosts.{group}.count={}", hosts / 2));
        let outcome = run("crowd", &[&pairs[..], &[format!("pairs.bytes={bytes}")]].concat());
        assert!(outcome.complete, "{hosts} hosts");
        (outcome.events, received(&outcome))
    };
    let ((few, few_frames), (more, more_frames)) = (crowd(20_000), crowd(40_000));
    ratio(more - few, more_frames - few_frames)
}

/// Events for a transmission on a cable that so many stations want all the time.
fn of_saturated(stations: u64) -> f64 {
    let changes = [
        format!("hosts.stations.count={stations}"),
        "hosts.stations.step=0".to_owned(),
        "load.time=0.5".to_owned(),
    ];
    let outcome = run("saturated-long", &changes);
    let wire = &outcome.wires[0].counted;
    ratio(outcome.events, wire.frames + wire.collisions)
}

#[test]
fn a_frame_costs_as_many_events_among_1024_hosts_as_between_two() {
    let two = of_crowd(2);
    for hosts in [4, 16, 64, 256, 1_024] {
        let events = of_crowd(hosts);
        assert!((events / two - 1.0).abs() < 0.05, "{hosts} hosts: {events} events a frame, two: {two}");
    }
}

#[test]
fn a_transmission_costs_no_more_events_on_a_cable_that_many_want_than_on_one_that_two_want() {
    let two = of_saturated(2);
    for stations in [4, 8, 16, 32, 64] {
        let events = of_saturated(stations);
        assert!(events < 1.3 * two, "{stations} stations: {events} events a transmission, two: {two}");
    }
}
