//! A card that spreads flows over queues, each with a processor and a shard of the host (receive-side scaling).

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{
    By, Keep, MachineOutcome, Outcome, ProcessorOutcome, Scenario, Tick, TransferOptions, Window,
};
use std::thread;

/// All of it.
const KEEP: Keep =
    Keep { frames: true, timeline: Some(Window { from: Tick::ZERO, until: Tick::NEVER }) };

fn scenario(name: &str, changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::named(name).unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    scenario
}

fn run_scenario(scenario: &Scenario, keep: Keep) -> Outcome {
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    let outcome = scenario.blueprint().unwrap().run(1988, &options, keep);
    assert!(outcome.programs.iter().all(|program| program.wrong_at.is_none()));
    outcome
}

/// The server with its queues, for some milliseconds, with every invariant judged.
fn run(changes: &[&str], keep: Keep) -> Outcome {
    run_scenario(&scenario("rss", &[&["limit.time=0.004"], changes].concat()), keep)
}

/// Changes for so many queues of the server, with a processor each.
fn queues(count: u16) -> [String; 2] {
    [format!("receiver.machine.processors={count}"), format!("receiver.nic.queues={count}")]
}

fn gigabits(count: u16, changes: &[&str]) -> f64 {
    let queues = queues(count);
    let outcome =
        run(&[&[queues[0].as_str(), queues[1].as_str()], changes].concat(), Keep::default());
    outcome.measure(&"goodput transfer".parse().unwrap()).unwrap() / 1e9
}

fn machine<'a>(outcome: &'a Outcome, name: &str) -> &'a MachineOutcome {
    outcome.machines.iter().find(|machine| machine.name == name).unwrap()
}

/// When frames of what length left.
fn pattern(outcome: &Outcome) -> Vec<(Tick, usize)> {
    outcome.frames.iter().map(|frame| (frame.at, frame.bytes.len())).collect()
}

#[test]
fn processors_that_serve_no_queue_change_nothing() {
    let run = |processors| {
        let few = ["transfer.bytes=2000000", processors];
        run_scenario(&scenario("100-gbe-pair", &few), KEEP)
    };
    let (one, four) = (run("server.processors=1"), run("server.processors=4"));
    assert!(one.complete && one.frames.len() > 1_000);
    assert_eq!(one.frames, four.frames);
    let receiver = machine(&four, "receiver");
    let idle: Vec<bool> = receiver.processors.iter().map(|one| one.queue.is_none()).collect();
    assert_eq!(idle, [false, true, true, true]);
    assert!((four.idle(receiver) - (3.0 + one.idle(machine(&one, "receiver"))) / 4.0).abs() < 1e-9);
}

#[test]
fn four_queues_of_which_one_gets_all_flows_are_one_queue() {
    let [one, four] = [1, 4].map(|count| {
        let queues = queues(count);
        run(&[&queues[0], &queues[1], "transfer.spread=one"], KEEP)
    });
    assert!(one.frames.len() > 4_000);
    assert_eq!(pattern(&one), pattern(&four));
    let busy = |one: &ProcessorOutcome| one.queue.unwrap().receive_packets;
    let received: Vec<u64> = machine(&four, "receiver").processors.iter().map(busy).collect();
    assert_eq!(received, [busy(&machine(&one, "receiver").processors[0]), 0, 0, 0]);
}

#[test]
fn a_server_takes_in_as_many_times_more_as_it_has_queues_until_the_cable_is_full() {
    for spread in ["transfer.spread=even", "transfer.spread=chance"] {
        let [one, two, four] = [1, 2, 4].map(|count| gigabits(count, &[spread]));
        assert!((1.8..2.4).contains(&(two / one)), "{spread}: {one} Gb/s, {two} with two queues");
        assert!(
            (3.6..4.8).contains(&(four / one)),
            "{spread}: {one} Gb/s, {four} with four queues"
        );
    }
    // What 100 Gb/s leave of 1,538 bytes on the wire for 1,448 of data.
    let most = 100.0 * 1_448.0 / 1_538.0;
    let full = gigabits(16, &["transfer.spread=even"]);
    assert!((0.9 * most..most).contains(&full), "{full} Gb/s with sixteen queues");
}

#[test]
fn processors_that_always_want_one_memory_bus_are_no_faster_than_one() {
    let wants = "receiver.machine.bus.processor=100";
    let [one, four] = [1, 4].map(|count| gigabits(count, &[wants]));
    assert!((four / one - 1.0).abs() < 0.25, "{one} Gb/s, {four} with four processors on one bus");
}

#[test]
fn what_queues_count_is_what_their_card_counts_and_each_has_its_interrupts() {
    let outcome = run(&[], KEEP);
    for machine in &outcome.machines {
        let queues: Vec<_> = machine.processors.iter().map(|one| one.queue.unwrap()).collect();
        assert!(queues.iter().all(|queue| queue.interrupts > 0), "{}", machine.name);
        let card = &machine.card;
        assert_eq!(
            queues.iter().map(|queue| queue.receive_packets).sum::<u64>(),
            card.receive_packets
        );
        assert_eq!(queues.iter().map(|queue| queue.receive_bytes).sum::<u64>(), card.receive_bytes);
        assert_eq!(
            queues.iter().map(|queue| queue.transmit_packets).sum::<u64>(),
            card.transmit_packets
        );
        assert_eq!(
            queues.iter().map(|queue| queue.transmit_bytes).sum::<u64>(),
            card.transmit_bytes
        );
        assert_eq!(queues.iter().map(|queue| queue.interrupts).sum::<u64>(), card.interrupts);
    }
    let sent: u64 = outcome.machines.iter().map(|machine| machine.card.transmit_packets).sum();
    assert!(
        sent.abs_diff(outcome.wires[0].counted.frames) <= 2,
        "but for one that is leaving at each end"
    );
    let spread = machine(&outcome, "receiver")
        .processors
        .iter()
        .map(|one| one.queue.unwrap().receive_packets);
    assert!(spread.min() > Some(500), "the hash leaves no queue of four without flows");
}

#[test]
fn a_question_for_a_neighbour_is_answered_once_and_teaches_every_shard() {
    let outcome = run(&["limit.time=0.001"], KEEP);
    let arp = outcome.frames.iter().filter(|frame| frame.bytes[12..14] == [8, 6]);
    // The receiver is station 0, and the sender 1: who sent it, and whether it asks.
    let said: Vec<(u8, bool)> = arp.map(|frame| (frame.bytes[11], frame.bytes[21] == 1)).collect();
    let count = |what: (u8, bool)| said.iter().filter(|&&said| said == what).count();
    assert_eq!(
        count((1, true)),
        8,
        "each shard of the sender asks, because nobody has answered yet"
    );
    assert_eq!(
        (count((0, false)), count((0, true))),
        (8, 0),
        "each question tells all shards who asks"
    );
    let sinks = outcome.programs.iter().filter(|program| program.name.ends_with("sink"));
    assert!(sinks.clone().count() == 16 && sinks.into_iter().all(|sink| sink.bytes > 0));
}

#[test]
fn a_timeline_has_a_lane_for_each_processor_and_each_queue() {
    let outcome = run(&["limit.time=0.001"], KEEP);
    let timeline = outcome.timeline.as_ref().unwrap();
    assert_eq!(timeline.left_out, 0);
    let lane = |part: String| timeline.lanes.iter().find(|lane| lane.part == part).unwrap();
    for machine in &outcome.machines {
        for (number, processor) in machine.processors.iter().enumerate() {
            let held = &lane(format!("{}: processor {number}", machine.name)).held;
            let time = |by: By| {
                let spans = held.iter().filter(|held| held.by == by);
                spans.map(|held| held.until.since(held.from).as_picos()).sum::<u64>()
            };
            let levels = [By::Driver, By::Network, By::Task].map(time);
            assert_eq!(
                levels.iter().sum::<u64>(),
                held.iter().map(|held| held.until.since(held.from).as_picos()).sum()
            );
            // What runs when the world ends is not counted yet.
            assert!(
                levels
                    .iter()
                    .zip(processor.levels)
                    .all(|(&seen, counted)| seen >= counted.as_picos())
            );
        }
    }
    assert!((0..4).all(|queue| !lane(format!("receiver: receive area {queue}")).held.is_empty()));
}

#[test]
fn a_cable_that_loses_damages_and_shuffles_is_borne_by_every_shard() {
    let changes = [
        "transfer.bytes=300000",
        "medium.loss=1",
        "medium.corruption=0.5",
        "medium.reorder=1",
        "medium.reorder_delay=5",
    ];
    let outcome = run(&[&changes[..], &["limit.time=0.1"]].concat(), KEEP);
    let sinks: Vec<_> =
        outcome.programs.iter().filter(|program| program.name.ends_with("sink")).collect();
    assert!(sinks.len() == 16 && sinks.iter().any(|sink| sink.complete));
    assert!(machine(&outcome, "receiver").card.receive_errors > 0);
}

#[test]
fn a_dialogue_goes_on_between_hosts_with_several_processors() {
    let talk = "[programs.talk]\nkind = \"dialogue\"\nfrom = \"sender\"\nto = \"receiver\"\nspread = \"even\"\n\
                characters = { value = 20, unit = \"B\", range = [1, 100], source = \"a test\" }\n\n[limit]";
    let text = Scenario::text("rss").unwrap().replace("[limit]", talk);
    let mut scenario = Scenario::parse("talk", &text, &|_| Err(String::new())).unwrap();
    ["transfer.bytes=1000", "limit.time=0.1"]
        .iter()
        .for_each(|change| scenario.set(change).unwrap());
    let outcome = run_scenario(&scenario, Keep::default());
    assert!(outcome.complete && outcome.program("talk: typist").unwrap().complete);
}

#[test]
fn the_same_seed_gives_the_same_world_on_however_many_threads() {
    let blueprint = scenario("rss", &["limit.time=0.002"]).blueprint().unwrap();
    let run = || {
        let outcome =
            blueprint.run(7, &TransferOptions::default(), Keep { frames: true, timeline: None });
        (outcome.events, outcome.frames)
    };
    let alone = run();
    assert!(alone.1.len() > 4_000);
    for threads in [2, 4] {
        let all: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|one| *one == alone), "{threads} threads");
    }
}

#[test]
fn queues_and_processors_that_cannot_be_are_refused_with_a_line() {
    let refused = |name: &str, changes: &[&str], says: &str| {
        let mut scenario = Scenario::named(name).unwrap();
        let set = changes.iter().try_for_each(|change| scenario.set(change));
        let error = set.and_then(|()| scenario.blueprint().map(|_| ())).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{changes:?}: {error}");
    };
    refused("rss", &["receiver.nic.queues=0"], "it lies between 1 and 32 queues");
    refused("rss", &["receiver.nic.queues=33"], "it lies between 1 and 32 queues");
    refused("rss", &["receiver.machine.processors=0"], "it lies between 1 and 32 processors");
    refused("rss", &["receiver.nic.queues=2.5"], "it must be a whole number from 1 to 32");
    refused("rss", &["receiver.nic.queues=8"], "give it 8 processors, or 4 queues");
    refused("rss", &["transfer.connections=0"], "it lies between 1 and 256 connections");
    refused("rss", &["transfer.spread=odd"], "choose one of chance, even, one");
    refused("sun-3-60-to-3-60", &["lance.queues=2"], "there is no parameter `lance.queues`");
    refused(
        "sun-3-60-to-3-60",
        &["sun-3-60.processors=2"],
        "there is no parameter `sun-3-60.processors`",
    );
    refused("wan-two-routers", &["west.machine.processors=2"], "give a router or a bridge one");
    refused("wan-two-routers", &["west.cards.lan.nic.queues=2"], "give a router or a bridge one");
    // A card of somebody's own, whose range says nothing of ours.
    let text = Scenario::text("rss").unwrap().replace("\"generic\"", "\"own.toml\"");
    let (text, _) = text.split_once("[set]").unwrap();
    for queues in [0, 100] {
        let range = "range = [0, 100], source = \"a test\"";
        let card = format!(
            "base = \"generic\"\nqueues = {{ value = {queues}, unit = \"queues\", {range} }}"
        );
        let scenario = Scenario::parse("own", text, &|_| Ok(card.clone())).unwrap();
        let error = scenario.blueprint().unwrap_err().to_string();
        assert!(error.contains("it must be a whole number from 1 to 32"), "{error}");
    }
}
