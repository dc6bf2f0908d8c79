//! Receive-side scaling (RSS): a NIC spreads flows over queues, each with a processor and a shard
//! of the host.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{
    Activity, Keep, MachineOutcome, Outcome, ProcessorOutcome, Scenario, Tick, TransferOptions,
    Window,
};
use std::thread;

/// Selects the recording of all frames and of the whole timeline.
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

/// Runs the scenario `rss` for a few milliseconds, and checks all invariants.
fn run(changes: &[&str], keep: Keep) -> Outcome {
    run_scenario(&scenario("rss", &[&["limit.time=0.004"], changes].concat()), keep)
}

/// Returns the changes that give the server this many queues, and one processor for each.
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

/// Returns the time and the length of each captured frame.
fn pattern(outcome: &Outcome) -> Vec<(Tick, usize)> {
    outcome.frames.iter().map(|frame| (frame.at, frame.bytes.len())).collect()
}

#[test]
fn processors_without_a_queue_change_nothing() {
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
fn four_queues_with_all_flows_on_one_equal_one_queue() {
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
fn throughput_grows_with_the_queues_up_to_the_line_rate() {
    for spread in ["transfer.spread=even", "transfer.spread=chance"] {
        let [one, two, four] = [1, 2, 4].map(|count| gigabits(count, &[spread]));
        assert!((1.8..2.4).contains(&(two / one)), "{spread}: {one} Gb/s, {two} with two queues");
        assert!(
            (3.6..4.8).contains(&(four / one)),
            "{spread}: {one} Gb/s, {four} with four queues"
        );
    }
    // Highest possible payload rate on 100 Gb/s: a full segment has 1,448 bytes of payload, and
    // takes the time of 1,538 bytes on the wire.
    let most = 100.0 * 1_448.0 / 1_538.0;
    let full = gigabits(16, &["transfer.spread=even"]);
    assert!((0.9 * most..most).contains(&full), "{full} Gb/s with sixteen queues");
}

#[test]
fn processors_limited_by_one_memory_bus_do_not_scale() {
    let wants = "receiver.machine.bus.processor=100";
    let [one, four] = [1, 4].map(|count| gigabits(count, &[wants]));
    assert!((four / one - 1.0).abs() < 0.25, "{one} Gb/s, {four} with four processors on one bus");
}

#[test]
fn counters_of_queues_add_up_to_those_of_their_nic() {
    let outcome = run(&[], KEEP);
    for machine in &outcome.machines {
        let queues: Vec<_> = machine.processors.iter().map(|one| one.queue.unwrap()).collect();
        assert!(queues.iter().all(|queue| queue.interrupts > 0), "{}", machine.name);
        let nic = &machine.nic;
        assert_eq!(
            queues.iter().map(|queue| queue.receive_packets).sum::<u64>(),
            nic.receive_packets
        );
        assert_eq!(queues.iter().map(|queue| queue.receive_bytes).sum::<u64>(), nic.receive_bytes);
        assert_eq!(
            queues.iter().map(|queue| queue.transmit_packets).sum::<u64>(),
            nic.transmit_packets
        );
        assert_eq!(
            queues.iter().map(|queue| queue.transmit_bytes).sum::<u64>(),
            nic.transmit_bytes
        );
        assert_eq!(queues.iter().map(|queue| queue.interrupts).sum::<u64>(), nic.interrupts);
    }
    let sent: u64 = outcome.machines.iter().map(|machine| machine.nic.transmit_packets).sum();
    assert!(
        sent.abs_diff(outcome.wires[0].counted.frames) <= 2,
        "except one frame in flight at each end"
    );
    let spread = machine(&outcome, "receiver")
        .processors
        .iter()
        .map(|one| one.queue.unwrap().receive_packets);
    assert!(spread.min() > Some(500), "the hash leaves no queue of four without flows");
}

#[test]
fn each_arp_request_is_answered_once_and_teaches_every_shard() {
    let outcome = run(&["limit.time=0.001"], KEEP);
    let arp = outcome.frames.iter().filter(|frame| frame.bytes[12..14] == [8, 6]);
    // One pair for each ARP packet. The number is the last byte of the sender's MAC address: 0 for
    // the host that receives the transfers, 1 for the host that sends them. The boolean says
    // whether the packet is a request.
    let said: Vec<(u8, bool)> = arp.map(|frame| (frame.bytes[11], frame.bytes[21] == 1)).collect();
    let count = |what: (u8, bool)| said.iter().filter(|&&said| said == what).count();
    assert_eq!(
        count((1, true)),
        8,
        "each shard of the sender sends a request before the first reply"
    );
    assert_eq!(
        (count((0, false)), count((0, true))),
        (8, 0),
        "each request teaches all shards its sender's address"
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
            let time = |by: Activity| {
                let spans = held.iter().filter(|held| held.by == by);
                spans.map(|held| held.until.since(held.from).as_picos()).sum::<u64>()
            };
            let levels = [Activity::Driver, Activity::Network, Activity::Task].map(time);
            assert_eq!(
                levels.iter().sum::<u64>(),
                held.iter().map(|held| held.until.since(held.from).as_picos()).sum()
            );
            // The counters of busy time include a job when it ends, but the timeline shows it from
            // its start. If a job is running when the simulation ends, the timeline therefore shows
            // more busy time.
            assert!(
                levels
                    .iter()
                    .zip(processor.levels)
                    .all(|(&seen, counted)| seen >= counted.as_picos())
            );
        }
    }
    assert!((0..4).all(|queue| !lane(format!("receiver: receive ring {queue}")).held.is_empty()));
}

#[test]
fn every_shard_survives_loss_damage_and_reordering() {
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
    assert!(machine(&outcome, "receiver").nic.receive_errors > 0);
}

#[test]
fn a_dialogue_goes_on_between_hosts_with_several_processors() {
    let talk = "[programs.talk]\nkind = \"dialogue\"\nfrom = \"sender\"\nto = \"receiver\"\n\
                spread = \"even\"\n\
                characters = { value = 20, unit = \"B\", range = [1, 100], source = \"a test\" \
                }\n\n[limit]";
    let text = Scenario::text("rss").unwrap().replace("[limit]", talk);
    let mut scenario = Scenario::parse("talk", &text, &|_| Err(String::new())).unwrap();
    ["transfer.bytes=1000", "limit.time=0.1"]
        .iter()
        .for_each(|change| scenario.set(change).unwrap());
    let outcome = run_scenario(&scenario, Keep::default());
    assert!(outcome.complete && outcome.program("talk: typist").unwrap().complete);
}

#[test]
fn a_seed_determines_the_results_on_any_number_of_threads() {
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
fn impossible_numbers_of_queues_and_processors_are_refused() {
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
    refused("wan-two-routers", &["west.nics.lan.nic.queues=2"], "give a router or a bridge one");
    // A user's own file can declare a range for a parameter, here 0 to 100 queues. The simulator's
    // own limits, 1 to 32, must apply nevertheless.
    let text = Scenario::text("rss").unwrap().replace("\"generic\"", "\"own.toml\"");
    let (text, _) = text.split_once("[set]").unwrap();
    for queues in [0, 100] {
        let range = "range = [0, 100], source = \"a test\"";
        let nic = format!(
            "base = \"generic\"\nqueues = {{ value = {queues}, unit = \"queues\", {range} }}"
        );
        let scenario = Scenario::parse("own", text, &|_| Ok(nic.clone())).unwrap();
        let error = scenario.blueprint().unwrap_err().to_string();
        assert!(error.contains("it must be a whole number from 1 to 32"), "{error}");
    }
}
