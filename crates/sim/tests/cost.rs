//! Cost of a simulation, as the number of events per frame. This number does not depend on the
//! speed of the machine. It must not grow with the number of hosts.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Keep, Outcome, Scenario, TransferOptions};

fn run(scenario: &str, changes: &[String]) -> Outcome {
    let mut scenario = Scenario::named(scenario).unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    scenario.blueprint().unwrap().run(1988, &TransferOptions::default(), Keep::default())
}

fn received(outcome: &Outcome) -> u64 {
    outcome.machines.iter().map(|machine| machine.nic.receive_packets).sum()
}

fn ratio(events: u64, frames: u64) -> f64 {
    f64::from(u32::try_from(events).unwrap()) / f64::from(u32::try_from(frames).unwrap())
}

/// Returns the cost of a frame in a network of pairs of hosts on one switch. Two runs differ in the
/// number of bytes that each pair transfers. The result is the difference of their numbers of
/// events, divided by that of their numbers of frames.
fn of_crowd(hosts: u64) -> f64 {
    let crowd = |bytes: u64| {
        let pairs =
            ["senders", "receivers"].map(|group| format!("hosts.{group}.count={}", hosts / 2));
        let outcome = run("crowd", &[&pairs[..], &[format!("pairs.bytes={bytes}")]].concat());
        assert!(outcome.complete, "{hosts} hosts");
        (outcome.events, received(&outcome))
    };
    let ((few, few_frames), (more, more_frames)) = (crowd(20_000), crowd(40_000));
    ratio(more - few, more_frames - few_frames)
}

/// Returns the number of events per transmission on a cable with this many saturating stations.
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

/// Returns the cost of a frame on a chain of cables, which routers or bridges join. Two runs differ
/// in the number of bytes of the transfer. The result is the difference of their numbers of events,
/// divided by that of their numbers of frames.
fn of_row(place: &str, cables: usize) -> f64 {
    let number = |value: u64, unit: &str| {
        format!(
            "{{ value = {value}, unit = \"{unit}\", range = [0, 1000000000], source = \"a test\" }}"
        )
    };
    let mut text = "title = \"a row of cables\"\n[media]\n".to_owned();
    (0..cables).for_each(|cable| text += &format!("l{cable} = {{ medium = \"link-1g\" }}\n"));
    for (name, on) in [("sender", 0), ("receiver", cables - 1)] {
        text += &format!(
            "[hosts.{name}]\nmachine = \"server\"\nnic = \"generic\"\ntcp = \"modern\"\n\
             on = \"l{on}\"\n\
             position = {}\n",
            number(0, "m")
        );
    }
    for relay in 1..cables {
        let (forward, input) = (number(1, "us"), number(1_000, "frames"));
        text += &format!(
            "[{place}.r{relay}]\nmachine = \"server\"\nforward = {forward}\ninput = {input}\n"
        );
        for (nic, on) in [("in", relay - 1), ("out", relay)] {
            let mtu = if place == "routers" {
                format!("mtu = {}\n", number(1_500, "B"))
            } else {
                String::new()
            };
            text += &format!(
                "[{place}.r{relay}.nics.{nic}]\nnic = \"generic\"\nqueue = \"tail-drop\"\n\
                 on = \"l{on}\"\n\
                 position = {}\n{mtu}",
                number(0, "m")
            );
        }
    }
    let size = number(65_536, "B");
    text += &format!(
        "[programs.transfer]\nkind = \"bulk\"\nfrom = \"sender\"\nto = \"receiver\"\n\
         bytes = {size}\n\
         send_buffer = {size}\nreceive_buffer = {size}\nwrite_size = {size}\nread_size = {size}\n\
         [limit]\n\
         time = {}\n",
        number(60, "s")
    );
    let row = |bytes: u64| {
        let mut scenario =
            Scenario::parse("row.toml", &text, &|file| Err(format!("{file} is not there")))
                .unwrap();
        scenario.set(&format!("transfer.bytes={bytes}")).unwrap();
        let blueprint = scenario.blueprint().unwrap();
        let outcome = blueprint.run(1988, &TransferOptions::default(), Keep::default());
        assert!(outcome.complete, "{cables} cables");
        (outcome.events, outcome.frames_carried())
    };
    let ((few, few_frames), (more, more_frames)) = (row(1_000_000), row(2_000_000));
    ratio(more - few, more_frames - few_frames)
}

#[test]
fn joined_cables_cost_no_more_events_a_frame_than_one() {
    let one = of_row("routers", 1);
    for place in ["routers", "bridges"] {
        for cables in [2, 4, 8, 16] {
            let events = of_row(place, cables);
            assert!(
                events <= one,
                "{cables} cables joined by {place}: {events} events a frame, one: {one}"
            );
        }
    }
}

#[test]
fn events_per_frame_do_not_grow_with_the_number_of_hosts() {
    let two = of_crowd(2);
    for hosts in [4, 16, 64, 256, 1_024] {
        let events = of_crowd(hosts);
        assert!(
            (events / two - 1.0).abs() < 0.05,
            "{hosts} hosts: {events} events a frame, two: {two}"
        );
    }
}

// The host has less memory for buffers than the send buffer of 100 MB. The source must sleep while
// memory is short, instead of retrying at every step. So the simulation must not need many more
// events than with a buffer of 4 MB.
#[test]
fn a_source_that_lacks_buffer_memory_sleeps_until_an_acknowledgement_frees_some() {
    let events = |send_buffer: u64| {
        let changes = [
            "medium.delay=50000".to_owned(),
            "transfer.bytes=10000000".to_owned(),
            format!("transfer.send_buffer={send_buffer}"),
        ];
        let outcome = run("10-gbe-pair", &changes);
        assert!(outcome.complete);
        outcome.events
    };
    let (small, large) = (events(4_000_000), events(100_000_000));
    assert!(large <= small + small / 10, "{large} events, {small} with a small buffer");
}

#[test]
fn events_per_transmission_do_not_grow_with_the_stations_of_a_bus() {
    let two = of_saturated(2);
    for stations in [4, 8, 16, 32, 64] {
        let events = of_saturated(stations);
        assert!(
            events < 1.3 * two,
            "{stations} stations: {events} events a transmission, two: {two}"
        );
    }
}
