//! `cargo xtask instructions`: counts of instructions, which repeat exactly, beside those that were
//! accepted. A change that makes one grow by more than three in a hundred is to be explained, or mended.

mod callgrind;
mod kept;

use crate::error::Error;
use crate::workspace::{cargo, root};
use callgrind::{Profile, Share};
use kept::{Counts, Kept};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Each work with the amounts of its two runs.
const WORKS: [(&str, [u64; 2]); 9] = [
    ("connection", [2_000, 4_000]),
    (DATA_ARM, [20_000, 40_000]),
    ("bulk", [2_000, 4_000]),
    ("bulk-acks", [2_000, 4_000]),
    ("bulk-batch", [2_000, 4_000]),
    ("path", [4_000, 12_000]),
    ("path-loss", [4_000, 12_000]),
    ("ping-pong", [500, 1_500]),
    ("connect", [200, 500]),
];
/// Of `connection`, what happens within [`HEARS_DATA`]: the receiving connection's part in a data segment.
const DATA_ARM: &str = "data-arm";
/// The function of the program that gives a connection a data segment, and does nothing else.
const HEARS_DATA: &str = "instructions::hear_data";
/// How much a count may grow, in hundredths.
const GROWTH: u64 = 3;
/// Functions of a profile that are listed.
const LISTED: usize = 45;

/// The names of all works.
pub(crate) fn works(between: &str) -> String {
    WORKS.map(|(name, _)| name).join(between)
}

/// Counts everything and compares it with what is kept.
pub(crate) fn compare() -> Result<(), Error> {
    let kept = Kept::read()?;
    let counted = count()?;
    if counted.machine != kept.machine {
        eprintln!(
            "xtask: the counts in docs/instructions.toml are of {}, and this is {}: they cannot be compared. On this \
             machine, `cargo xtask instructions --accept` before a change gives what to compare it with",
            kept.machine, counted.machine
        );
        return print(&counted, &Kept::default()).map(drop);
    }
    match print(&counted, &kept)? {
        0 => Ok(()),
        count => Err(Error::Instructions { count }),
    }
}

/// Counts everything and keeps it.
pub(crate) fn accept() -> Result<(), Error> {
    let before = Kept::read().unwrap_or_default();
    let counted = count()?;
    print(&counted, &before)?;
    counted.write()?;
    eprintln!("xtask: docs/instructions.toml is written; `git diff` shows what has changed");
    Ok(())
}

/// Lists the functions in which a unit of one work spends its instructions.
pub(crate) fn profile(work: &str) -> Result<(), Error> {
    let Some(&(work, amounts)) = WORKS.iter().find(|(name, _)| *name == work) else {
        let works = works("|");
        return Err(Error::Usage(format!("usage: cargo xtask instructions --profile {works}")));
    };
    let profile = measure(&program()?, work, amounts)?;
    let mut shares: Vec<(&String, &Share)> = profile.iter().collect();
    shares.sort_by(|a, b| b.1.instructions.total_cmp(&a.1.instructions));
    let mut out = io::stdout().lock();
    let mut say = |line: String| writeln!(out, "{line}").map_err(Error::Write);
    say(format!(
        "{work}: {:.0} instructions a unit; own instructions, calls, function",
        sum(&profile, |_| true)
    ))?;
    for (name, share) in shares.iter().take(LISTED) {
        say(format!("{:>9.1} {:>6.2}  {name}", share.instructions, share.calls))?;
    }
    Ok(())
}

fn count() -> Result<Kept, Error> {
    let program = program()?;
    let mut counted = Kept { machine: machine()?, ..Kept::default() };
    for (work, amounts) in WORKS {
        counted.works.insert(work.to_owned(), counts(&measure(&program, work, amounts)?));
    }
    Ok(counted)
}

/// What is kept of a profile.
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

/// Prints a table, and returns how many counts have grown too much.
fn print(counted: &Kept, before: &Kept) -> Result<usize, Error> {
    let mut out = io::stdout().lock();
    let mut grown = 0;
    writeln!(out, "{:<12} {:<10} {:>8} {:>8}", "work", "what", "before", "now")
        .map_err(Error::Write)?;
    for (work, counts) in &counted.works {
        for (what, &now) in counts {
            let before = before.works.get(work).and_then(|counts| counts.get(what)).copied();
            let verdict = before.map_or(String::new(), |before| verdict(before, now, &mut grown));
            let before = before.map_or_else(|| "–".to_owned(), |before| before.to_string());
            writeln!(out, "{work:<12} {what:<10} {before:>8} {now:>8}{verdict}")
                .map_err(Error::Write)?;
        }
    }
    Ok(grown)
}

fn verdict(before: u64, now: u64, grown: &mut usize) -> String {
    let change = relative(before, now);
    if now * 100 > before * (100 + GROWTH) {
        *grown += 1;
        format!("  {change:+.1} %: more than {GROWTH} % too many")
    } else if now * 100 < before * (100 - GROWTH) {
        format!("  {change:+.1} %: fewer, to be kept with --accept")
    } else {
        String::new()
    }
}

/// The change in hundredths.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn relative(before: u64, now: u64) -> f64 {
    (now as f64 / before as f64 - 1.0) * 100.0
}

/// Builds the program that does the works.
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

/// What a unit of a work takes.
fn measure(program: &Path, work: &str, amounts: [u64; 2]) -> Result<Profile, Error> {
    let [(less, few), (more, many)] =
        [run_counted(program, work, amounts[0])?, run_counted(program, work, amounts[1])?];
    Ok(callgrind::a_unit(&less, &more, many - few))
}

/// The profile of one run, and the units that it did.
fn run_counted(program: &Path, work: &str, amount: u64) -> Result<(Profile, f64), Error> {
    let path = program.with_file_name("instructions.callgrind");
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", path.display()));
    if work == DATA_ARM {
        command.arg(format!("--toggle-collect={HEARS_DATA}"));
    }
    command.arg(program).args([work, &amount.to_string()]);
    // A fast string move counts as an instruction a byte: long copies are made in wide words as short ones are.
    command.env("GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824");
    let done = run(&mut command)?;
    let text = fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?;
    let units =
        done.trim().parse().map_err(|_| Error::Failed { command: "valgrind".to_owned() })?;
    let mut profile = callgrind::parse(&text);
    if work == DATA_ARM {
        // A call and a return, which are the program's own.
        profile.remove(HEARS_DATA);
    }
    Ok((profile, units))
}

/// What a program prints; what it complains of goes where our complaints go.
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

/// What counts depend on besides the source.
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
    fn who_asks_for_a_work_that_there_is_not_is_told_of_all() {
        let told = profile("nonsense").unwrap_err().to_string();
        for text in [told.as_str(), &crate::usage(), kept::HEAD] {
            for (work, _) in WORKS {
                assert!(text.contains(work), "{work}: {text}");
            }
        }
    }

    #[test]
    fn a_count_may_grow_by_three_in_a_hundred_and_no_more() {
        let mut grown = 0;
        assert_eq!(verdict(1_000, 1_030, &mut grown), "");
        assert_eq!(grown, 0);
        assert!(verdict(1_000, 1_031, &mut grown).contains("+3.1 %"));
        assert_eq!(grown, 1);
        assert!(verdict(1_000, 900, &mut grown).contains("--accept"));
        assert_eq!(grown, 1);
    }

    #[test]
    fn copies_and_sums_are_not_the_protocol() {
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
