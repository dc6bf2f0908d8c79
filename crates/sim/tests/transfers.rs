//! Complete transfers between machines of 1988, with all invariants checked.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{
    Activity, Captured, Held, Keep, Outcome, Scenario, Tick, TransferOptions, Window,
};

/// A timeline window that is longer than any transfer here.
const WINDOW: Window = Window { from: Tick::ZERO, until: Tick::NEVER };

/// Runs a built-in scenario with changes, and checks all invariants.
fn run(scenario: &str, changes: &[&str], seed: u64) -> Outcome {
    let mut scenario = Scenario::named(scenario).unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    scenario.blueprint().unwrap().run(seed, &options, Keep { frames: true, timeline: Some(WINDOW) })
}

#[test]
fn every_byte_arrives_at_its_position() {
    for scenario in ["sun-3-60-to-3-60", "sun-3-280-to-3-60"] {
        for packets in [1, 3, 17] {
            let buffer = packets * 1_460;
            let changes = [
                "transfer.bytes=300000".to_owned(),
                format!("transfer.send_buffer={buffer}"),
                format!("transfer.receive_buffer={buffer}"),
            ];
            let outcome = run(scenario, &changes.each_ref().map(String::as_str), 1);
            let sink = outcome.program("transfer: sink").unwrap();
            assert!(outcome.complete && sink.complete, "{scenario}, {packets} packets");
            assert_eq!(
                (sink.bytes, sink.wrong_at),
                (300_000, None),
                "{scenario}, {packets} packets"
            );
        }
    }
}

#[test]
fn a_seed_determines_the_frames_to_the_picosecond() {
    let frames = |seed| run("sun-3-60-to-3-60", &["transfer.bytes=100000"], seed).frames;
    let first = frames(1);
    assert!(first.len() > 100);
    assert_eq!(first, frames(1));
    assert_ne!(first, frames(2));
}

#[test]
fn counters_of_nics_and_wires_agree() {
    let outcome = run("sun-3-60-to-3-60", &["transfer.bytes=200000", "noise.rate=0"], 1);
    let sent: u64 = outcome.machines.iter().map(|machine| machine.nic.transmit_packets).sum();
    let received: u64 = outcome.machines.iter().map(|machine| machine.nic.receive_packets).sum();
    let in_flight = sent - received;
    assert_eq!(sent, outcome.wires[0].counted.frames);
    assert!(in_flight <= 1, "{in_flight} frames are missing");
}

#[test]
fn background_frames_have_an_experimental_ethertype_and_no_receiver() {
    let outcome = run("sun-3-60-to-3-60", &["transfer.bytes=100000", "noise.rate=2000"], 1);
    let kind = |frame: &&Captured| frame.bytes.get(12..14) == Some(&[0x88, 0xb5]);
    let noise: Vec<&Captured> = outcome.frames.iter().filter(kind).collect();
    assert!(noise.len() > 10, "{} frames", noise.len());
    assert!(
        noise
            .iter()
            .all(|frame| frame.bytes.len() == 196 && frame.bytes[..6] == [2, 0, 0, 0, 0xff, 0xff])
    );
}

#[test]
fn the_spans_of_a_timeline_add_up_to_the_counters() {
    let outcome = run("sun-3-60-to-3-60", &["transfer.bytes=200000"], 1);
    let timeline = outcome.timeline.as_ref().unwrap();
    let held = |part: &str| {
        let lane = timeline.lanes.iter().find(|lane| lane.part == part);
        lane.map_or(&[][..], |lane| &lane.held)
    };
    for lane in &timeline.lanes {
        assert!(lane.held.iter().all(|held| held.from < held.until), "{}", lane.part);
        assert!(
            lane.held.windows(2).all(|two| two[0].until <= two[1].from),
            "{}: one at a time",
            lane.part
        );
    }
    let time = |held: &[Held], by: Activity| -> u64 {
        let spans = held.iter().filter(|held| held.by == by);
        spans.map(|held| held.until.since(held.from).as_picos()).sum()
    };
    for machine in &outcome.machines {
        let processor = held(&format!("{}: processor", machine.name));
        let levels =
            [Activity::Driver, Activity::Network, Activity::Task].map(|by| time(processor, by));
        assert_eq!(levels, machine.levels.map(|span| span.as_picos()), "{}", machine.name);
    }
    let wires = timeline.lanes.iter().filter(|lane| lane.part.ends_with(": wire"));
    let on_wires: Vec<&Held> = wires.flat_map(|lane| &lane.held).collect();
    let count = |by: Activity| on_wires.iter().filter(|held| held.by == by).count() as u64;
    let carried =
        [Activity::Frame, Activity::Data, Activity::Acknowledgement, Activity::WindowUpdate];
    let frames: u64 = carried.into_iter().map(count).sum();
    assert_eq!(frames, outcome.wires[0].counted.frames);
    assert!(count(Activity::Data) > count(Activity::Frame));
    let waits = timeline.lanes.iter().filter(|lane| lane.part.ends_with(": waits for"));
    assert!(waits.flat_map(|lane| &lane.held).any(|held| held.by == Activity::WaitsForData));
    // The timeline may show fewer collisions than the counters. A station that senses another
    // transmission at the instant at which it begins its own collides after a time of zero. The
    // timeline leaves out activities that take no time.
    assert!(
        count(Activity::Collision) > 0
            && count(Activity::Collision) <= outcome.wires[0].counted.collisions
    );
    assert_eq!(timeline.left_out, 0);
}

#[test]
fn every_built_in_scenario_asks_a_question_and_can_be_run() {
    for name in Scenario::names() {
        let scenario = Scenario::named(name).unwrap();
        assert!(scenario.question().contains('?'), "{name} asks nothing");
        assert!(scenario.blueprint().is_ok(), "{name}: {:?}", scenario.blueprint().err());
    }
}

#[test]
fn impossible_scenarios_are_refused_with_a_line() {
    let parse =
        |text: &str| Scenario::parse("s.toml", text, &|file| Err(format!("{file} is not there")));
    let text = Scenario::text("sun-3-60-to-3-60").unwrap();
    let says = |text: &str, line: &str| {
        let error = parse(text)
            .and_then(|scenario| scenario.blueprint().map(|_| ()))
            .unwrap_err()
            .to_string();
        assert!(error.contains(line) && !error.contains('\n'), "{error}");
    };
    says(
        &text.replace("nic = \"lance\"", "nic = \"lanze\""),
        "there is no NIC `lanze`: choose one of lance, 82586",
    );
    says(&text.replace("to = \"receiver\"", "to = \"sender\""), "has one host at both ends");
    says(&text.replace("to = \"receiver\"", "to = \"unknown\""), "there is no host `unknown`");
    says(
        &text.replace("ethernet-10", "link-1g"),
        "a cable with two ends has no background traffic",
    );
    says(&text.replace("title =", "titel ="), "title is missing");
    says(
        &format!("{text}\n[more]\nword = \"x\"\n"),
        "more.word, line 37 of s.toml, means nothing here",
    );
    says(&text.replace("value = 65536", "value = 0"), "lies between 1 and");
    let routers = Scenario::text("wan-two-routers").unwrap();
    let narrow = "value = 87, unit = \"B\", range = [1";
    says(
        &routers.replace("value = 1500, unit = \"B\", range = [88", narrow),
        "is 87: it must be at least 88",
    );
    says("medium = [", "line 1 of s.toml is not valid TOML");
}
