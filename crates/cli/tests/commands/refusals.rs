//! Tests that each command refuses bad input with one clear line and exit code 2.

use super::folder::{fail, succeed, within};
use std::fs;
use tempfile::TempDir;

/// The arguments of a sweep with four short runs.
const SMALL: [&str; 10] = [
    "sweep",
    "--send-buffers",
    "1..2",
    "--receive-buffers",
    "1..2",
    "--repeat",
    "1",
    "--bytes",
    "64KiB",
    "--quiet",
];

/// Runs the command. Asserts exit code 2, no new file, and one line on standard error, which begins
/// with `error: ` and contains the expected text.
fn refused(words: &[&str], expected_text: &str) {
    let directory = TempDir::new().unwrap();
    let line = fail(directory.path(), words, 2);
    assert_eq!(line.lines().count(), 1, "{words:?}: {line}");
    assert!(line.starts_with("error: ") && line.contains(expected_text), "{words:?}: {line}");
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        0,
        "{words:?} left something behind"
    );
}

#[test]
fn invalid_options_are_refused() {
    refused(&[], "see `linerate --help`");
    refused(&["sweep", "--quit"], "did you mean `--quiet`?");
    refused(&["sweep", "--zzz"], "see `linerate sweep --help`");
    refused(&["sweep", "--send-buffers", ""], "1..17");
    refused(&["sweep", "--send-buffers", "1-17"], "1..17");
    refused(&["sweep", "--send-buffers", "17..1"], "write the smaller end first");
    refused(&["sweep", "--receive-buffers", "0..4"], "the smallest is 1");
    refused(&["sweep", "--receive-buffers", "1,64KiB"], "every size, or none, a suffix");
    refused(&["sweep", "--bytes", "0"], "zero bytes: the minimum is 1");
    refused(&["sweep", "--bytes", "8 miles"], "KiB");
    refused(&["sweep", "--repeat", "0"], "from 1 to");
    refused(&["sweep", "--max-seconds", "0"], "--max-seconds is zero");
    refused(&["sweep", "--write-size", "0"], "the minimum is 1");
    refused(&["sweep", "--read-size", "1GiB"], "the maximum is 64 MiB");
    refused(&["sweep", "--mtu", "20"], "the minimum is 88");
    refused(&["sweep", "--line-rate", "0"], "10Mb/s");
    refused(&["sweep", "--send-buffers", "1.17"], "a range such as 1..17");
    refused(&["sweep", "--impair", "loss=1%,loss=2%"], "`loss` is given twice");
    refused(&["sweep", "--on", "paper"], "stack, tap, tun, kernel");
    refused(&["sweep", "--on", "stack", "--family", "ipv6"], "measure --on tap");
    refused(&["sweep", "--on", "serial:49"], "write 50 to 4000000 baud");
    refused(&["sweep", "--on", "serial:fast@fast"], "`fast` is no rate");
    refused(&["sweep", "--on", "serial:2400", "--mtu", "1501"], "choose 88 to 1500");
    refused(&["sweep", "--on", "serial:2400", "--offloads", "on"], "no meaning --on serial");
    refused(&["sweep", "--header-compression", "on"], "measure --on serial:2400");
    refused(&["sweep", "192.0.2.1", "--vlan", "5"], "--vlan is for linerate's host");
    refused(&["sweep", "--vlan", "4095"], "the ID of a VLAN from 1 to 4094");
    refused(&["sweep", "--impair", "loss"], "such as `loss=1%`");
    refused(&["sweep", "--impair", "luck=1%"], "there is no impairment `luck`");
    refused(&["sweep", "host:0"], "1 to 65535");
    refused(&["sweep", "--mtu", "70000"], "no more than 65535");
    refused(&["sweep", "--seed", "x"], "write a whole number from 0 to 18446744073709551615");
    refused(&["sim", "night", "--threads", "0"], "write a whole number from 1 to 1024");
    refused(&["sim", "controls", "--repeat", "4294967295"], "write a whole number from 1 to 1024");
    refused(&["ping", "192.0.2.1", "--timeout", "0"], "the time is zero");
    refused(
        &["sim", "run", "crowd", "--timeline", "x.svg", "--timeline-for", "0s"],
        "the time is zero",
    );
}

#[test]
fn unknown_congestion_controls_are_refused() {
    let kernels = "there is no congestion control `vegan`: choose one of ";
    refused(&["source", "127.0.0.1:1", "--congestion", "vegan"], kernels);
    refused(&["source", "--listen", "0", "--congestion", "vegan"], kernels);
    refused(&["sink", "--listen", "127.0.0.1:0", "--congestion", "vegan"], kernels);
    refused(&["sweep", "--on", "kernel", "--congestion", "vegan"], kernels);
    // Both the interface and the congestion control do not exist. The error must be about the
    // congestion control, so its name must be checked before the interface is opened.
    let on = ["--on", "packet:lr-none", "--address", "192.0.2.9/24", "--congestion", "vegan"];
    let ours = "`vegan`: choose one of tahoe, reno, new-reno, cubic, bbr, fixed:SEGMENTS";
    for command in [&["source", "192.0.2.7"][..], &["sink"]] {
        refused(&[command, &on].concat(), ours);
    }
    for link in ["packet:lr-none", "xdp:lr-none", "tap"] {
        let mut words = vec!["sweep", "--on", link, "--congestion", "vegan"];
        if link != "tap" {
            words.extend(["--address", "192.0.2.9/24", "192.0.2.7"]);
        }
        refused(&words, ours);
    }
}

#[test]
fn contradicting_options_are_refused() {
    refused(&["sweep", "--offloads", "on"], "measure --on tap");
    refused(&["sweep", "192.0.2.1", "--on", "stack"], "leave HOST out, or measure --on kernel");
    refused(&["sweep", "--direction", "to-kernel"], "measure --on tap");
    refused(&["sweep", "--diagonal", "--send-buffers", "1..4"], "give both the same list");
    refused(&["sweep", "--on", "kernel", "--profile", "bsd_tahoe"], "not used --on kernel");
    refused(&["sweep", "--on", "kernel", "--pcap", "x.pcapng"], "not used --on kernel");
    refused(&["sweep", "--on", "kernel", "--impair", "loss=1%"], "not used --on kernel");
    refused(&["sweep", "--out", "a", "--resume", "b"], "cannot be used with");
    refused(&["sweep", "--repeat", "4294967295"], "runs are too many, the most are 1,000,000");
}

#[test]
fn a_parameter_must_not_be_changed_twice() {
    let twice = ["--set", "transfer.bytes=1000", "--set", "programs.transfer.bytes = 2000"];
    for words in [
        &["sim", "run", "sun-3-60-to-3-60"][..],
        &["sim", "show", "sun-3-60-to-3-60"],
        &["sim", "night"],
        &["sweep", "--on", "sim:sun-3-60-to-3-60"],
    ] {
        refused(&[words, &twice].concat(), "--set changes `transfer.bytes` twice");
    }
}

#[test]
fn unknown_names_are_refused() {
    refused(&["sweep", "--on", "kernel", "--congestion", "steady"], "steady");
    refused(
        &["sweep", "--congestion", "steady"],
        "choose one of tahoe, reno, new-reno, cubic, bbr, fixed:SEGMENTS",
    );
    refused(&["sweep", "--profile", "vax"], "choose one of modern, bsd_tahoe, bsd_reno");
}

#[test]
fn sizes_that_linerate_does_not_support_are_refused() {
    refused(&["sweep", "--mtu", "100"], "at least 128");
    refused(&["sweep", "--send-buffers", "4GiB"], "1073741824 are granted");
    refused(&["sweep", "--profile", "bsd_tahoe", "--receive-buffers", "1MiB"], "no window scaling");
}

#[test]
fn unusable_folders_are_refused() {
    refused(&["sweep", "--resume", "nowhere"], "name a folder that `linerate sweep` has created");
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("full")).unwrap();
    fs::write(directory.path().join("full/precious"), "").unwrap();
    let words = [&SMALL[..], &["--on", "kernel", "--out", "full"]].concat();
    assert!(fail(directory.path(), &words, 2).contains("full is not empty"));
}

#[test]
fn unwritable_files_are_refused() {
    for flag in ["--json", "--pcap"] {
        refused(&["sweep", flag, "nowhere/x"], "nowhere/x cannot be written");
        refused(&["sweep", flag, "/"], "name a writable f");
    }
    let directory = TempDir::new().unwrap();
    let words = [&SMALL[..], &["--on", "kernel", "--json", "/dev/full"]].concat();
    assert!(fail(directory.path(), &words, 2).contains("the disk is full at /dev/full"));
    let words = [&SMALL[..], &["--pcap", "/dev/full"]].concat();
    let line = fail(directory.path(), &words, 2);
    assert!(
        line.contains("the capture cannot be written") && line.contains("0 of 4 runs are saved"),
        "{line}"
    );
}

/// `--out kept` names an existing file, although it must name a folder. The command detects this
/// error only after it has checked whether the result files are writable. That check must have
/// created and changed no file.
#[test]
fn a_refused_sweep_changes_no_file_and_creates_none() {
    let directory = TempDir::new().unwrap();
    let kept = directory.path().join("kept");
    for [json, capture] in [["kept", "new"], ["new", "kept"]] {
        fs::write(&kept, "content").unwrap();
        let words = [&SMALL[..], &["--json", json, "--pcap", capture, "--out", "kept"]].concat();
        assert!(fail(directory.path(), &words, 2).contains("kept cannot be written"));
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "{words:?} left something behind"
        );
        assert_eq!(fs::read_to_string(&kept).unwrap(), "content", "{words:?}");
    }
}

#[test]
fn results_do_not_overwrite_each_other_or_their_inputs() {
    let directory = TempDir::new().unwrap();
    let within = |name: &str| directory.path().join(name);
    fs::write(within("x.pkt"), "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n").unwrap();
    succeed(directory.path(), &[&SMALL[..], &["--out", "night"]].concat());
    let kept = |name: &str| fs::read(within(name)).unwrap();
    let before = [kept("x.pkt"), kept("night/runs.jsonl")];
    for (words, expected_text) in [
        (&["sweep", "--json", "x", "--svg", "x"][..], "x would get two results"),
        (&["sweep", "--csv", "x", "--pcap", "./x"], "./x would get two results"),
        (
            &["sweep", "--resume", "night", "--json", "night/runs.jsonl"],
            "night/runs.jsonl is needed",
        ),
        (
            &["sim", "run", "crowd", "--json", "x.json", "--timeline", "x.json"],
            "x.json would get two results",
        ),
        (&["sim", "run", "crowd", "--json", "x", "--pcap", "x"], "x would get two results"),
        (&["script", "run", "x.pkt", "--json", "x", "--pcap", "x"], "x would get two results"),
        (&["script", "run", ".", "--json", "x.pkt"], "x.pkt is needed"),
        (&["script", "compare", "x.pkt", "--json", "x.pkt"], "x.pkt is needed"),
    ] {
        let line = fail(directory.path(), words, 2);
        assert!(line.contains(expected_text), "{words:?}: {line}");
        assert!(!within("x").exists() && !within("x.json").exists(), "{words:?}");
    }
    assert_eq!(before, [kept("x.pkt"), kept("night/runs.jsonl")]);
}

/// The command must report unwritable files before it prints anything and before the simulation
/// starts, which takes long.
#[test]
fn unwritable_files_of_simulations_are_refused() {
    let directory = TempDir::new().unwrap();
    for words in [
        &["sim", "night", "--json", "nowhere/x.json"][..],
        &["sim", "run", "crowd", "--json", "nowhere/x.json"],
        &["sim", "run", "crowd", "--timeline", "nowhere/x.json"],
        &["sim", "run", "crowd", "--pcap", "nowhere/x.json"],
        &["script", "run", "x.pkt", "--json", "nowhere/x.json"],
        &["script", "run", "x.pkt", "--pcap", "nowhere/x.json"],
    ] {
        fs::write(directory.path().join("x.pkt"), "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
            .unwrap();
        let output = within(directory.path(), words).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.contains("nowhere/x.json cannot be written"), "{words:?}: {line}");
        assert_eq!(
            (output.status.code(), output.stdout.as_slice()),
            (Some(2), &b""[..]),
            "{words:?}"
        );
    }
    for words in [
        &["sim", "run", "crowd", "--json", "/dev/full"][..],
        &["script", "run", "x.pkt", "--json", "/dev/full"],
        &["script", "run", "x.pkt", "--pcap", "/dev/full"],
    ] {
        let line = fail(directory.path(), words, 2);
        assert!(
            line.contains("cannot be written (No space left") && !line.contains("--resume"),
            "{line}"
        );
    }
}

#[test]
fn a_damaged_folder_is_not_resumed() {
    let directory = TempDir::new().unwrap();
    let words = [&SMALL[..], &["--on", "kernel", "--out", "night"]].concat();
    succeed(directory.path(), &words);
    let resume = ["sweep", "--resume", "night"];
    for (file, damage) in [("runs.jsonl", "{}\n"), ("facts.json", "{"), ("plan.json", "[]")] {
        let path = directory.path().join("night").join(file);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, damage).unwrap();
        let line = fail(directory.path(), &resume, 2);
        assert!(line.starts_with("error: night/") && line.contains("is damaged"), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        fs::write(&path, whole).unwrap();
    }
    succeed(directory.path(), &resume);
}

#[test]
fn a_plan_that_differs_from_the_folder_is_not_resumed() {
    let directory = TempDir::new().unwrap();
    let words = [&SMALL[..], &["--on", "kernel", "--out", "night"]].concat();
    succeed(directory.path(), &words);
    for (flags, expected_text) in [
        (&["--repeat", "2"][..], "--repeat differs from the plan in night"),
        (&["--verify"], "--verify differs"),
        (&["--budget", "30"], "--budget differs"),
        (&["--on", "stack"], "--on differs"),
        (&["192.0.2.1"], "the HOST differs"),
    ] {
        let words = [&["sweep", "--resume", "night"], flags].concat();
        let line = fail(directory.path(), &words, 2);
        assert!(line.contains(expected_text), "{line}");
    }
    succeed(directory.path(), &["sweep", "--resume", "night", "--repeat", "1", "--bytes", "64KiB"]);
    let words = [&SMALL[..], &["--on", "sim:sun-3-60-to-3-60", "--out", "virtual"]].concat();
    succeed(directory.path(), &words);
    for (flags, expected_text) in [
        (["--on", "sim:10-gbe-pair"], "error: --on differs from the plan in virtual"),
        (["--family", "ipv6"], "error: --family differs"),
        (["--set", "limit.time=20"], "error: --set differs"),
    ] {
        let words = [&["sweep", "--resume", "virtual"], &flags[..]].concat();
        let line = fail(directory.path(), &words, 2);
        assert!(line.contains(expected_text), "{line}");
    }
    succeed(directory.path(), &["sweep", "--resume", "virtual", "--on", "sim:sun-3-60-to-3-60"]);
}
