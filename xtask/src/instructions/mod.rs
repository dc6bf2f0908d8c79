//! `cargo xtask instructions`: counts instructions, which is reproducible, and compares the counts
//! with the accepted ones. Growth of more than 3 % must be explained or removed.

mod callgrind;
mod counts;

use crate::error::Error;
use crate::workspace::{cargo, root};
use callgrind::{Profile, Share};
use counts::{AllCounts, Counts};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workloads, each with the amounts of work in a short and in a longer run. The difference
/// between the two runs is counted.
const WORKLOADS: [(&str, [u64; 2]); 12] = [
    ("connection", [2_000, 4_000]),
    (DATA_ARM, [20_000, 40_000]),
    ("bulk", [2_000, 4_000]),
    ("bulk-acks", [2_000, 4_000]),
    ("bulk-batch", [2_000, 4_000]),
    ("bulk-ipv6", [2_000, 4_000]),
    ("bulk-batch-ipv6", [2_000, 4_000]),
    ("connect-ipv6", [200, 400]),
    ("path", [4_000, 12_000]),
    ("path-loss", [4_000, 12_000]),
    ("ping-pong", [500, 1_500]),
    ("connect", [200, 500]),
];
/// The workload of which only the instructions within [`DELIVER_DATA`] are counted: those that
/// receive a data segment.
const DATA_ARM: &str = "data-arm";
/// The function of the counted program that passes a data segment to a connection.
const DELIVER_DATA: &str = "instructions::deliver_data";
/// Maximum growth of a count that is accepted, in per cent.
const MAX_GROWTH_PERCENT: u64 = 3;
/// Number of functions in a printed profile.
const LISTED_FUNCTIONS: usize = 45;

/// Returns the names of all workloads.
pub(crate) fn workloads() -> Vec<&'static str> {
    WORKLOADS.map(|(name, _)| name).to_vec()
}

/// Counts the instructions of all workloads, and compares them with the accepted counts.
pub(crate) fn compare() -> Result<(), Error> {
    let accepted = AllCounts::read()?;
    let counted = count()?;
    if counted.machine != accepted.machine {
        eprintln!(
            "xtask: the counts in docs/instructions.toml are for {}, and this is {}: they cannot \
             be compared. `cargo xtask instructions --accept` before a change records the counts \
             of this machine",
            accepted.machine, counted.machine
        );
        return print(&counted, &AllCounts::default()).map(drop);
    }
    match print(&counted, &accepted)? {
        0 => Ok(()),
        count => Err(Error::Instructions { count }),
    }
}

/// Counts the instructions of all workloads, and writes the counts to the file of accepted counts.
pub(crate) fn accept() -> Result<(), Error> {
    let before = AllCounts::read().unwrap_or_default();
    let counted = count()?;
    print(&counted, &before)?;
    counted.write()?;
    eprintln!("xtask: docs/instructions.toml is written; `git diff` shows what has changed");
    Ok(())
}

/// Prints the functions that execute the most instructions in one unit of a workload.
pub(crate) fn profile(workload: &str) -> Result<(), Error> {
    let Some(&(workload, amounts)) = WORKLOADS.iter().find(|(name, _)| *name == workload) else {
        let workloads = workloads().join("|");
        return Err(Error::Usage(format!("usage: cargo xtask instructions --profile {workloads}")));
    };
    let profile = measure(&program()?, workload, amounts)?;
    let mut shares: Vec<(&String, &Share)> = profile.iter().collect();
    shares.sort_by(|a, b| b.1.instructions.total_cmp(&a.1.instructions));
    let mut out = io::stdout().lock();
    let mut print_line = |line: String| writeln!(out, "{line}").map_err(Error::Output);
    print_line(format!(
        "{workload}: {:.0} instructions a unit; own instructions, calls, function",
        sum(&profile, |_| true)
    ))?;
    for (name, share) in shares.iter().take(LISTED_FUNCTIONS) {
        print_line(format!("{:>9.1} {:>6.2}  {name}", share.instructions, share.calls))?;
    }
    Ok(())
}

fn count() -> Result<AllCounts, Error> {
    let program = program()?;
    let mut counted = AllCounts { machine: machine()?, ..AllCounts::default() };
    for (workload, amounts) in WORKLOADS {
        counted
            .workloads
            .insert(workload.to_owned(), counts(&measure(&program, workload, amounts)?));
    }
    Ok(counted)
}

/// Sums the instructions of a profile in two categories: `all`, and `protocol`, which excludes
/// copying and checksums.
fn counts(profile: &Profile) -> Counts {
    let whole = |instructions: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rounded count"
        )]
        let whole = instructions.round() as u64;
        whole
    };
    let mut counts = Counts::new();
    counts.insert("all".to_owned(), whole(sum(profile, |_| true)));
    counts.insert(
        "protocol".to_owned(),
        whole(sum(profile, |name| !is_copy(name) && !is_checksum(name))),
    );
    counts
}

fn sum(profile: &Profile, matches: impl Fn(&str) -> bool) -> f64 {
    profile.iter().filter(|(name, _)| matches(name)).map(|(_, share)| share.instructions).sum()
}

fn is_copy(name: &str) -> bool {
    ["memcpy", "memmove", "memset"].iter().any(|copy| name.contains(copy))
}

fn is_checksum(name: &str) -> bool {
    name.contains("linerate_wire::checksum")
}

/// Prints a table of the counts. Returns the number of counts that have grown by more than
/// [`MAX_GROWTH_PERCENT`].
fn print(counted: &AllCounts, before: &AllCounts) -> Result<usize, Error> {
    let mut out = io::stdout().lock();
    let mut grown = 0;
    writeln!(out, "{:<12} {:<10} {:>8} {:>8}", "workload", "what", "before", "now")
        .map_err(Error::Output)?;
    for (workload, counts) in &counted.workloads {
        for (what, &now) in counts {
            let before =
                before.workloads.get(workload).and_then(|counts| counts.get(what)).copied();
            let verdict = before.map_or(String::new(), |before| verdict(before, now, &mut grown));
            let before = before.map_or_else(|| "–".to_owned(), |before| before.to_string());
            writeln!(out, "{workload:<12} {what:<10} {before:>8} {now:>8}{verdict}")
                .map_err(Error::Output)?;
        }
    }
    Ok(grown)
}

fn verdict(before: u64, now: u64, grown: &mut usize) -> String {
    let change = relative(before, now);
    if now * 100 > before * (100 + MAX_GROWTH_PERCENT) {
        *grown += 1;
        format!("  {change:+.1} %: grown by more than {MAX_GROWTH_PERCENT} %")
    } else if now * 100 < before * (100 - MAX_GROWTH_PERCENT) {
        format!("  {change:+.1} %: to be accepted by --accept")
    } else {
        String::new()
    }
}

/// Returns the change of a count in per cent.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn relative(before: u64, now: u64) -> f64 {
    (now as f64 / before as f64 - 1.0) * 100.0
}

/// Builds the program with the workloads, and returns its path.
fn program() -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "linerate-sockets",
        "--example",
        "instructions",
    ]);
    let target = root().join("target");
    run(command.arg("--target-dir").arg(&target))?;
    Ok(target.join("release/examples/instructions"))
}

/// Returns the profile of one unit of a workload, from two runs with different amounts of work.
fn measure(program: &Path, workload: &str, amounts: [u64; 2]) -> Result<Profile, Error> {
    let [(less, few), (more, many)] =
        [run_counted(program, workload, amounts[0])?, run_counted(program, workload, amounts[1])?];
    Ok(callgrind::a_unit(&less, &more, many - few))
}

/// Runs a workload under callgrind. Returns the profile, and the number of units of work.
fn run_counted(program: &Path, workload: &str, amount: u64) -> Result<(Profile, f64), Error> {
    let path = program.with_file_name("instructions.callgrind");
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", path.display()));
    if workload == DATA_ARM {
        command.arg(format!("--toggle-collect={DELIVER_DATA}"));
    }
    command.arg(program).args([workload, &amount.to_string()]);
    // This setting makes glibc copy large blocks with vector instructions. Otherwise it would use
    // `rep movsb`, of which Callgrind counts each byte as an instruction.
    command.env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824");
    let done = run(&mut command)?;
    let text = fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?;
    let units =
        done.trim().parse().map_err(|_| Error::Failed { command: "valgrind".to_owned() })?;
    let mut profile = callgrind::parse(&text);
    if workload == DATA_ARM {
        // `DELIVER_DATA` is a function of the measuring program that calls the stack. Its own
        // instructions do not belong to the stack, so they are left out.
        profile.remove(DELIVER_DATA);
    }
    Ok((profile, units))
}

/// Runs a command, and returns its standard output.
fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|source| match name.as_str() {
            "valgrind" => Error::Valgrind(source),
            _ => Error::Start { command: name.clone(), source },
        })?;
    if !output.status.success() {
        return Err(Error::Failed { command: name });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Describes the properties of this machine on which counts depend.
fn machine() -> Result<String, Error> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = run(Command::new(compiler).arg("--version"))?;
    let release = version.split(' ').nth(1).unwrap_or("unknown").trim().to_owned();
    Ok(format!(
        "rustc {release}, {}{}",
        std::env::consts::ARCH,
        if has_avx2() { " with AVX2" } else { "" }
    ))
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_workload_is_answered_with_all_names() {
        let message = profile("nonsense").unwrap_err().to_string();
        for text in [message.as_str(), &crate::usage(), counts::HEAD] {
            for (workload, _) in WORKLOADS {
                assert!(text.contains(workload), "{workload}: {text}");
            }
        }
    }

    #[test]
    fn a_count_may_grow_by_three_percent() {
        let mut grown = 0;
        assert_eq!(verdict(1_000, 1_030, &mut grown), "");
        assert_eq!(grown, 0);
        assert!(verdict(1_000, 1_031, &mut grown).contains("+3.1 %"));
        assert_eq!(grown, 1);
        assert!(verdict(1_000, 900, &mut grown).contains("--accept"));
        assert_eq!(grown, 1);
    }

    #[test]
    fn copies_and_checksums_are_not_protocol() {
        let share = |instructions| Share { instructions, calls: 1.0 };
        let profile = Profile::from([
            ("__memcpy_avx_unaligned_erms".to_owned(), share(1_000.0)),
            ("linerate_wire::checksum::avx2::sum".to_owned(), share(300.0)),
            ("linerate_tcp::input::predict::predict".to_owned(), share(40.4)),
            ("linerate_tcp::output::poll_transmit".to_owned(), share(200.0)),
        ]);
        let expected =
            [("all", 1_540), ("protocol", 240)].map(|(what, count)| (what.to_owned(), count));
        assert_eq!(counts(&profile), Counts::from(expected));
    }
}
