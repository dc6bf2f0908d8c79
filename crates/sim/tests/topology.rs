//! Scenarios with several media: routers and bridges forward between them, and inconsistent
//! scenarios are refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Activity, Captured, Keep, Outcome, Scenario, Tick, TransferOptions, Window};

fn number(value: u64, unit: &str) -> String {
    format!(
        "{{ value = {value}, unit = \"{unit}\", range = [0, 1000000000], source = \"a test\" }}"
    )
}

/// Returns the TOML tables of media, given as pairs of name and kind.
fn media(media: &[(&str, &str)]) -> String {
    let lines = media.iter().map(|(name, file)| format!("{name} = {{ medium = \"{file}\" }}\n"));
    format!("title = \"a test\"\n[media]\n{}", lines.collect::<String>())
}

fn host(name: &str, on: &str) -> String {
    format!(
        "[hosts.{name}]\nmachine = \"server\"\nnic = \"generic\"\ntcp = \"modern\"\n\
         on = \"{on}\"\nposition = {}\n",
        number(0, "m")
    )
}

/// Returns the TOML tables of a router or a bridge that has a NIC on each of these media.
fn relay(place: &str, name: &str, on: &[&str]) -> String {
    let mtu =
        if place == "routers" { format!("mtu = {}\n", number(1_500, "B")) } else { String::new() };
    let nics = on.iter().enumerate().map(|(nic, on)| {
        format!(
            "[{place}.{name}.nics.c{nic}]\nnic = \"generic\"\nqueue = \"tail-drop\"\n\
             on = \"{on}\"\nposition = {}\n{mtu}",
            number(0, "m")
        )
    });
    format!(
        "[{place}.{name}]\nmachine = \"server\"\nforward = {}\ninput = {}\n{}",
        number(1, "us"),
        number(100, "frames"),
        nics.collect::<String>()
    )
}

fn transfer(from: &str, to: &str) -> String {
    let (size, most) = (number(100_000, "B"), number(60, "s"));
    format!(
        "[programs.transfer]\nkind = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = {size}\n\
         send_buffer = {size}\n\
         receive_buffer = {size}\nwrite_size = {size}\nread_size = {size}\n[limit]\ntime = {most}\n"
    )
}

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse("s.toml", text, &|file| Err(format!("{file} is not there")))
        .map_err(|error| error.to_string())
}

fn run(text: &str, changes: &[&str]) -> Outcome {
    let mut scenario = parse(text).unwrap();
    changes.iter().for_each(|change| scenario.set(change).unwrap());
    let options = TransferOptions { verify: true, checks: true, ..TransferOptions::default() };
    scenario.blueprint().unwrap().run(1, &options, Keep { frames: true, timeline: None })
}

fn assert_arrived(outcome: &Outcome) {
    let sink = outcome.program("transfer: sink").unwrap();
    assert!(outcome.complete && sink.complete, "{sink:?}");
    assert_eq!((sink.bytes, sink.wrong_at), (100_000, None));
}

/// Returns the error message of a refused scenario.
fn refused(text: &str) -> String {
    let error =
        parse(text).and_then(|scenario| scenario.blueprint().map_err(|error| error.to_string()));
    let line = error.map(|_| ()).unwrap_err();
    assert!(!line.contains('\n'), "{line}");
    line
}

/// Returns a scenario of two hosts whose path leads through two routers.
fn two_routers() -> String {
    media(&[("left", "link-1g"), ("middle", "link-1g"), ("right", "link-1g")])
        + &host("a", "left")
        + &relay("routers", "one", &["left", "middle"])
        + &relay("routers", "two", &["middle", "right"])
        + &host("b", "right")
        + &transfer("a", "b")
}

/// Returns the TTL of each IP packet that a wire carried.
fn times_to_live(outcome: &Outcome, wire: u16) -> Vec<u8> {
    let packets =
        |frame: &&Captured| frame.wire == wire && frame.bytes.get(12..14) == Some(&[8, 0]);
    let mut ttls: Vec<u8> =
        outcome.frames.iter().filter(packets).map(|frame| frame.bytes[22]).collect();
    ttls.sort_unstable();
    ttls.dedup();
    ttls
}

#[test]
fn each_router_on_the_path_decrements_the_ttl() {
    let outcome = run(&two_routers(), &[]);
    assert_arrived(&outcome);
    let [left, middle, right] = [0, 1, 2].map(|wire| times_to_live(&outcome, wire));
    assert_eq!((left, middle, right), (vec![62, 64], vec![63], vec![62, 64]));
    let names: Vec<&str> = outcome.wires.iter().map(|wire| wire.name.as_str()).collect();
    assert_eq!(names, ["left", "middle", "right"]);
    for relay in &outcome.relays {
        assert!(relay.counted.forwarded > 100 && relay.lost() == 0, "{relay:?}");
        assert!(relay.busy > linerate_sim::Span::ZERO);
    }
    let (one, two) = (&outcome.relays[0].counted, &outcome.relays[1].counted);
    assert_eq!((one.answered, two.answered), (1, 1), "each answers one ARP request");
    assert!(
        one.forwarded.abs_diff(two.forwarded) <= 1,
        "the last acknowledgement may be in flight: {one:?} {two:?}"
    );
}

#[test]
fn the_rate_of_a_path_is_that_of_its_narrowest_cable() {
    for (name, rate) in [("wan-tail-drop", 20), ("wan-two-routers", 20), ("sun-3-60-to-3-60", 10)] {
        let scenario = Scenario::named(name).unwrap();
        let found = scenario.blueprint().unwrap().rate().bits_per_second();
        assert_eq!(found, rate * 1_000_000, "{name}");
    }
}

#[test]
fn a_timeline_has_lanes_for_the_units_of_routers_and_bridges() {
    let bridged = media(&[("left", "link-1g"), ("right", "link-1g")])
        + &host("a", "left")
        + &relay("bridges", "one", &["left", "right"])
        + &host("b", "right")
        + &transfer("a", "b");
    for text in [two_routers(), bridged] {
        let window = Window { from: Tick::ZERO, until: Tick::NEVER };
        let keep = Keep { frames: false, timeline: Some(window) };
        let outcome =
            parse(&text).unwrap().blueprint().unwrap().run(1, &TransferOptions::default(), keep);
        let timeline = outcome.timeline.as_ref().unwrap();
        let held = |part: &str| {
            let lane = timeline.lanes.iter().find(|lane| lane.part == part);
            lane.map_or(&[][..], |lane| &lane.held)
        };
        for relay in &outcome.relays {
            let processor = held(&format!("{}: processor", relay.name));
            let levels = [Activity::Driver, Activity::Network].map(|by| {
                let spans = processor.iter().filter(|held| held.by == by);
                spans.map(|held| held.until.since(held.from).as_picos()).sum::<u64>()
            });
            assert_eq!(
                levels,
                [relay.levels[0].as_picos(), relay.levels[1].as_picos()],
                "{}",
                relay.name
            );
            for lane in ["one/c0: receive ring", "one/c1: transmit ring"] {
                assert!(!held(lane).is_empty(), "{lane}");
            }
            assert!(!held(&format!("{}: input", relay.name)).is_empty(), "{}", relay.name);
        }
    }
}

#[test]
fn watched_frames_are_streamed_instead_of_collected() {
    let blueprint = parse(&two_routers()).unwrap().blueprint().unwrap();
    let keep = Keep { frames: true, timeline: None };
    let mut watched = Vec::new();
    let options = TransferOptions::default();
    let outcome = blueprint.run_watched(1, &options, keep, &mut |frame| watched.push(frame));
    assert!(outcome.complete && outcome.frames.is_empty());
    assert_eq!(watched, blueprint.run(1, &options, keep).frames);
}

#[test]
fn a_seed_determines_the_frames_on_every_wire() {
    let (first, again) = (run(&two_routers(), &[]), run(&two_routers(), &[]));
    assert_eq!((first.frames, first.events), (again.frames, again.events));
}

#[test]
fn a_full_queue_of_a_router_drops_and_the_transfer_survives() {
    let outcome = run(
        &two_routers(),
        &["middle.medium.rate=1", "one.nics.c1.queue.limit=5", "one.nics.c1.nic.transmit.ring=2"],
    );
    assert_arrived(&outcome);
    let queue = &outcome.relays[0].nics[1].egress;
    assert!(queue.dropped > 0 && queue.waited > linerate_sim::Span::ZERO, "{queue:?}");
}

#[test]
fn a_router_whose_processor_is_too_slow_overruns_and_the_transfer_survives() {
    let outcome = run(&two_routers(), &["one.forward=2000", "one.input=4"]);
    assert_arrived(&outcome);
    assert!(outcome.relays[0].counted.overrun > 0, "{:?}", outcome.relays[0].counted);
}

#[test]
fn a_router_reports_the_mtu_of_a_serial_line() {
    let text = media(&[("lan", "link-1g"), ("line", "serial-2400")])
        + &host("a", "lan")
        + &relay("routers", "gateway", &["lan", "line"])
        + &host("b", "line")
        + &transfer("a", "b");
    let outcome =
        run(&text, &["line.medium.rate=100", "gateway.nics.c1.mtu=576", "b.tcp.mtu=1500"]);
    assert_arrived(&outcome);
    assert!(outcome.relays[0].counted.too_long > 0);
    let longest =
        outcome.frames.iter().filter(|frame| frame.wire == 1).map(|frame| frame.bytes.len()).max();
    assert_eq!(longest, Some(576), "packets without an Ethernet header, of the full MTU");
}

#[test]
fn bridges_join_switches_and_forward_only_what_must_cross() {
    let text = media(&[("first", "wan"), ("second", "wan"), ("third", "wan")])
        + &host("a", "first")
        + &host("b", "first")
        + &host("far", "third")
        + &relay("bridges", "one", &["first", "second"])
        + &relay("bridges", "two", &["second", "third"]);
    let across = run(&(text.clone() + &transfer("a", "far")), &[]);
    assert_arrived(&across);
    assert_eq!(times_to_live(&across, 2), [64], "bridges do not decrement the TTL");
    let local = run(&(text + &transfer("a", "b")), &[]);
    assert_arrived(&local);
    let crossed = local.frames.iter().filter(|frame| frame.wire > 0).count();
    assert!(crossed < 8, "{crossed} frames have left the first switch, where both hosts are");
}

#[test]
fn a_named_medium_equals_an_unnamed_one() {
    let one = "title = \"a test\"\nmedium = \"ethernet-10\"\n".to_owned();
    let hosts = host("a", "left") + &host("b", "left") + &transfer("a", "b");
    let plain = run(&(one + &hosts.replace("on = \"left\"\n", "")), &[]);
    let named = run(&(media(&[("left", "ethernet-10")]) + &hosts), &[]);
    assert_eq!((plain.frames, plain.events), (named.frames, named.events));
}

#[test]
fn a_loop_of_bridges_is_refused_with_the_names_of_its_parts() {
    let switches = media(&[("first", "wan"), ("second", "wan"), ("third", "wan")])
        + &host("a", "first")
        + &host("b", "third")
        + &transfer("a", "b");
    let ring = switches.clone()
        + &relay("bridges", "x", &["first", "second"])
        + &relay("bridges", "y", &["second", "third"])
        + &relay("bridges", "z", &["third", "first"]);
    let line = refused(&ring);
    assert!(line.contains("are a loop"), "{line}");
    assert!(
        ["first", "second", "third", "x", "y", "z"].iter().all(|part| line.contains(part)),
        "{line}"
    );
    let twice = switches.clone() + &relay("bridges", "x", &["first", "third", "second", "second"]);
    assert!(refused(&twice).starts_with("x, second are a loop"), "{}", refused(&twice));
    let line = switches
        + &relay("bridges", "x", &["first", "second"])
        + &relay("bridges", "y", &["second", "third"]);
    assert!(parse(&line).unwrap().blueprint().is_ok(), "a chain of bridges is no loop");
    let routed = ring
        .replace("bridges.z", "routers.z")
        .replace("[routers.z.nics.c0]\n", "[routers.z.nics.c0]\nmtu = {mtu}\n");
    let routed = routed
        .replace("[routers.z.nics.c1]\n", "[routers.z.nics.c1]\nmtu = {mtu}\n")
        .replace("{mtu}", &number(1_500, "B"));
    assert!(refused(&routed).contains("c0 and c1 of z are on one network"));
}

#[test]
fn a_ring_of_routers_is_accepted_and_the_shortest_path_is_taken() {
    let text = media(&[("first", "wan"), ("second", "wan"), ("third", "wan")])
        + &host("a", "first")
        + &host("b", "third")
        + &relay("routers", "x", &["first", "second"])
        + &relay("routers", "y", &["second", "third"])
        + &relay("routers", "z", &["third", "first"])
        + &transfer("a", "b");
    let outcome = run(&text, &[]);
    assert_arrived(&outcome);
    let forwarded: Vec<u64> = outcome.relays.iter().map(|relay| relay.counted.forwarded).collect();
    assert!(forwarded[..2] == [0, 0] && forwarded[2] > 100, "{forwarded:?}");
}

#[test]
fn inconsistent_topologies_are_refused() {
    let two = media(&[("left", "wan"), ("right", "wan")]);
    let hosts = host("a", "left") + &host("b", "right") + &transfer("a", "b");
    let router = relay("routers", "r", &["left", "right"]);
    let whole = two.clone() + &hosts + &router;
    assert!(parse(&whole).unwrap().blueprint().is_ok());
    let says = |text: &str, line: &str| assert!(refused(text).contains(line), "{}", refused(text));
    says(&(two.clone() + &hosts), "no path leads from a to b for transfer: join left and right");
    says(&whole.replacen("on = \"left\"\n", "", 1), "the NIC of a is on no medium");
    says(
        &whole.replacen("on = \"left\"", "on = \"left, right\"", 1),
        "the NIC of a is on left and on right",
    );
    says(
        &whole.replacen("on = \"left\"", "on = \"up\"", 1),
        "there is no medium `up`: choose one of left, right",
    );
    says(
        &(whole.clone() + "[hosts.a.nics.c1]\nnic = \"generic\"\n"),
        "a has several NICs and is no router",
    );
    let at = |host: &str, address: &str, text: &str| {
        let named = format!("[hosts.{host}]\n");
        text.replace(&named, &format!("{named}address = \"{address}\"\n"))
    };
    says(&at("a", "10.0.0.3", &whole), "a and the NIC c0 of r have one address, 10.0.0.3");
    says(
        &at("a", "10.1.0.9", &whole),
        "a cannot have the address 10.1.0.9: its network is 10.0.0.0/16",
    );
    says(&at("a", "ten", &whole), "`ten` is not an IP address");
    says(&whole.replace("routers.r", "routers.a"), "two machines are called a");
    says(&(two + &hosts + &relay("routers", "r", &["left"])), "r joins nothing");
    says(
        &whole.replace("[media]\n", "[media]\nspare = { medium = \"wan\" }\n"),
        "no host is on spare",
    );
    says(&format!("medium = \"wan\"\n{whole}"), "one medium or several");
    says(&(whole + "[noise]\nword = \"x\"\n"), "of s.toml, means nothing here");
}

#[test]
fn the_parameters_of_a_router_can_be_changed() {
    let mut scenario = parse(&two_routers()).unwrap();
    for change in [
        "one.forward=5",
        "one.machine=sun-3-180",
        "one.machine.cost.interrupt=10",
        "one.nics.c0.nic=lance",
        "lance.transmit.start=20",
        "one.nics.c1.queue=codel",
        "one.nics.c1.queue.target=4",
        "middle.medium=ethernet-10",
        "middle.medium.collisions=off",
    ] {
        assert_eq!(scenario.set(change), Ok(()), "{change}");
    }
    assert!(scenario.blueprint().is_ok());
    let refused =
        |scenario: &mut Scenario, change: &str| scenario.set(change).unwrap_err().to_string();
    assert!(refused(&mut scenario, "one.nics.c1.queue=fifo").contains("there is no queue `fifo`"));
    assert!(
        refused(&mut scenario, "one.forwards=5").contains("there is no parameter `one.forwards`")
    );
}

#[test]
fn transfers_share_the_narrowest_cable_in_their_direction() {
    let sharing = |name: &str| {
        let blueprint = Scenario::named(name).unwrap().blueprint().unwrap();
        blueprint.sharing_the_narrowest().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(sharing("wan-tail-drop"), ["one", "other"]);
    assert_eq!(sharing("10-gbe-pair"), ["transfer"]);
}
