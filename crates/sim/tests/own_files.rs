//! Tests of files that users have written, with arbitrary values and ranges. Each scenario must
//! either run, or be refused by a message of one line that gives the position and the remedy.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Keep, ParameterError, Scenario, Setting, Span, TransferOptions};
use std::path::Path;

/// Returns the text of a built-in file, changed to what a user might write. All ranges are
/// unlimited. Names of built-in files are replaced by names of the user's own files, which end in
/// `.toml`.
fn own(text: &str) -> String {
    let line = |line: &str| {
        let mut line = line.to_owned();
        if let Some((before, behind)) = line.split_once("range = [") {
            let (_, behind) = behind.split_once(']').unwrap();
            line = format!("{before}range = [-inf, inf]{behind}");
        }
        for key in ["base", "machine", "nic", "tcp", "medium", "queue"] {
            let start = format!("{key} = \"");
            if let Some((before, behind)) = line.split_once(&start) {
                line = format!("{before}{start}{}", behind.replacen('"', ".toml\"", 1));
            }
        }
        line + "\n"
    };
    text.lines().map(line).collect()
}

/// Returns the text of the user's file `file`: the built-in file with this name, changed by
/// [`own`].
fn read(file: &str) -> Result<String, String> {
    let folders =
        ["machines", "nics", "media", "queues", "tcps"].map(|folder| Path::new(folder).join(file));
    let found = folders.iter().find_map(|path| std::fs::read_to_string(path).ok());
    found.map(|text| own(&text)).ok_or_else(|| format!("{file} is not there"))
}

fn parse(text: &str) -> Result<Scenario, ParameterError> {
    Scenario::parse("s.toml", text, &read)
}

/// Runs a scenario for a simulated millisecond, if it is accepted.
fn try_to_run(scenario: &Scenario) -> Result<(), String> {
    let blueprint = scenario.blueprint().map_err(|error| error.to_string())?;
    let limit = Some(Span::from_picos(1_000_000_000));
    let _ =
        blueprint.run(1, &TransferOptions { limit, ..TransferOptions::default() }, Keep::default());
    Ok(())
}

/// Returns the keys of all numbers of a scenario, except for those of published figures. Of a
/// number that several hosts have, only the key for the first host is returned.
fn numbers(scenario: &Scenario) -> Vec<String> {
    let numbers =
        scenario.settings().iter().filter(|(_, setting)| matches!(setting, Setting::Number(_)));
    let mut seen = Vec::new();
    let keys = numbers.map(|(key, _)| key.to_owned()).filter(|key| {
        let kind = key
            .split('.')
            .skip(if key.starts_with("hosts.") { 2 } else { 0 })
            .collect::<Vec<_>>()
            .join(".");
        let is_new = !seen.contains(&kind);
        seen.push(kind);
        is_new && !key.starts_with("published.")
    });
    keys.collect()
}

#[test]
fn any_number_is_refused_in_one_line_or_can_be_run() {
    for name in [
        "lance-on-busy-bus",
        "vms-linear",
        "saturated-mixed",
        "nfs-1k-8-bit",
        "blast-82586",
        "wan-red",
    ]
    .into_iter()
    .chain(["wan-fq-codel", "sun-gateway", "serial-typist", "10-gbe-pair"])
    {
        let scenario = parse(&own(Scenario::text(name).unwrap())).unwrap();
        for key in numbers(&scenario) {
            for value in ["-1", "0", "1e6", "1e18"] {
                let mut changed = scenario.clone();
                let refused = changed
                    .set(&format!("{key}={value}"))
                    .map_err(|error| error.to_string())
                    .and_then(|()| try_to_run(&changed));
                if let Err(line) = refused {
                    assert!(
                        !line.contains('\n') && line.contains(": "),
                        "{name}, {key}={value}: {line}"
                    );
                }
            }
        }
    }
}

#[test]
fn errors_name_the_file_and_the_line() {
    let text = own(Scenario::text("sun-3-60-to-3-60").unwrap());
    let line_of =
        |text: &str, part: &str| 1 + text.lines().position(|line| line.contains(part)).unwrap();
    let refused = |text: &str| {
        let error = parse(text)
            .and_then(|scenario| scenario.blueprint().map(|_| ()))
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let starts =
        |text: &str, line: &str| assert!(refused(text).starts_with(line), "{}", refused(text));
    let bytes = line_of(&text, "bytes = ");
    starts(
        &text.replace("value = 8388608", "value = 0"),
        &format!("programs.transfer.bytes, line {bytes} of s.toml, is 0:"),
    );
    starts(
        &text.replace("value = 8388608", "value = -1"),
        &format!("programs.transfer.bytes, line {bytes} of s.toml, is -1 B:"),
    );
    starts(
        &text.replace("value = 8388608", "value = inf"),
        &format!("programs.transfer.bytes = inf B, line {bytes} of s.toml, is out of range:"),
    );
    starts(
        &text.replace("value = 8388608", "value = \"8\""),
        &format!("programs.transfer.bytes, line {bytes} of s.toml, needs value,"),
    );
    starts(
        &text.replace("value = 8388608, unit = \"B\"", "value = 8, unit = \"ms\""),
        &format!("programs.transfer.bytes, line {bytes} of s.toml, has the unit ms, but must be"),
    );
    starts(
        &text.replace("value = 8388608, unit = \"B\"", "value = 8, unit = \"kg\""),
        &format!("programs.transfer.bytes, line {bytes} of s.toml, has the unit kg,"),
    );
    starts(
        &text.replace("[limit]", "[limit\n]"),
        &format!("line {} of s.toml is not valid TOML", line_of(&text, "[limit]")),
    );
    let last = 1 + text.lines().count();
    starts(
        &format!("{text}mor = \"x\"\n"),
        &format!("limit.mor, line {last} of s.toml, means nothing here"),
    );
    starts(
        &format!("{text}\"a\\nb\" = \"x\"\n"),
        &format!("limit.a\\nb, line {last} of s.toml, has control characters"),
    );
    starts(
        &format!("{text}[set]\n\"lance.toml.transmit.start\" = 7\n"),
        &format!("set.lance.toml.transmit.start, line {}", last + 1),
    );
    let number = "{ value = 7, unit = \"us\", range = [0, 9], source = \"a test\" }";
    starts(
        &format!("{text}[set]\n\"sender.nic.transmit.start\" = {number}\n"),
        &format!("set.sender.nic.transmit.start, line {}", last + 1),
    );
    for odd in
        ["\"la\\nce\"", &number.replace("us", "u\\rs"), &number.replace("a test", "\\u001b[2J")]
    {
        let line = format!("limit.more, line {last} of s.toml, contains control characters");
        starts(&format!("{text}more = {odd}\n"), &line);
    }
    starts(
        &text.replace("\"lance.toml\"", "\"lanze.toml\""),
        "lanze.toml, which hosts.receiver.nic names, cannot be read",
    );
    let mut changed = parse(&text).unwrap();
    changed.set("transfer.bytes=0").unwrap();
    let error = changed.blueprint().unwrap_err().to_string();
    assert!(error.starts_with("programs.transfer.bytes is 0: it must be at least 1"), "{error}");
}

#[test]
fn errors_name_the_file_of_a_base() {
    let text = own(Scenario::text("sun-3-60-to-3-60").unwrap());
    let broken = |file: &str| match file {
        "sun-3-60.toml" => read(file).map(|text| text.replacen("value = ", "value = -", 1)),
        file => read(file),
    };
    let scenario = Scenario::parse("s.toml", &text, &broken).unwrap();
    let error = scenario.blueprint().unwrap_err().to_string();
    assert!(error.contains(" of sun-3-60.toml, is -"), "{error}");
}

#[test]
fn three_hundred_bridged_switches_are_one_network() {
    let number = "{ value = 1, unit = \"us\", range = [0, 9], source = \"a test\" }";
    let place = number.replace("us", "m");
    let media = (0..300).map(|number| format!("m{number:03} = {{ medium = \"wan\" }}\n"));
    let host = |name: &str, on: &str| {
        format!(
            "[hosts.{name}]\nmachine = \"server\"\nnic = \"generic\"\ntcp = \"modern\"\n\
             on = \"{on}\"\nposition = {place}\n"
        )
    };
    let nic = |bridge: usize, nic: usize| {
        let on = bridge + nic;
        format!(
            "[bridges.b{bridge}.nics.c{nic}]\nnic = \"generic\"\nqueue = \"tail-drop\"\n\
             on = \"m{on:03}\"\nposition = {place}\n"
        )
    };
    let frames = number.replace("us", "frames");
    let bridge = |bridge| {
        format!(
            "[bridges.b{bridge}]\nmachine = \"server\"\nforward = {number}\ninput = {frames}\n{}{}",
            nic(bridge, 0),
            nic(bridge, 1)
        )
    };
    let text = format!(
        "title = \"a test\"\n[media]\n{}{}{}{}[limit]\ntime = {number}\n",
        media.collect::<String>(),
        host("a", "m000"),
        host("b", "m299"),
        (0..299).map(bridge).collect::<String>()
    );
    let parse =
        |text: &str| Scenario::parse("s.toml", text, &read).unwrap().blueprint().map(|_| ());
    assert_eq!(parse(&text), Ok(()));
    let ring = text.replace("on = \"m299\"\nposition", "on = \"m000\"\nposition");
    assert!(parse(&ring).is_err());
}
