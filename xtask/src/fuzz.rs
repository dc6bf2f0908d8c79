//! `cargo xtask fuzz`: libFuzzer makes up stories, guided by which code the ones before have reached. Instrumented by the
//! stable compiler's own pass, which wants flags for the whole build: so the programs are a workspace of their own.

use crate::error::Error;
use crate::workspace::{cargo, root};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Something that is told what a fuzzer makes up.
struct Target {
    /// The program.
    name: &'static str,
    /// The folder of what it is told first.
    begins_with: &'static str,
    /// Bytes of a story at most: longer ones find nothing else, and take longer.
    longest: u32,
}

const TARGETS: [Target; 4] = [
    Target {
        name: "segments_into_a_connection",
        begins_with: "fuzz/corpus/segments_into_a_connection",
        longest: 1_024,
    },
    Target {
        name: "frames_into_a_host",
        begins_with: "fuzz/corpus/frames_into_a_host",
        longest: 1_024,
    },
    Target { name: "text_into_a_script", begins_with: "scripts", longest: 4_096 },
    Target { name: "text_into_a_world", begins_with: "crates/sim/scenarios", longest: 4_096 },
];

/// Has every edge of the code count how often it is taken, and every compare tell libFuzzer what was compared.
const FLAGS: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

pub(crate) fn usage() -> String {
    format!(
        "\
usage: cargo xtask fuzz TARGET [--minutes N]    new stories for so long (10 unless said), from those that there are on
       cargo xtask fuzz TARGET FILE             one of them again

TARGET: {}
It wants a C++ compiler, for libFuzzer. A story that breaks something is kept in fuzz/artifacts; in fuzz/corpus one of
segments or frames is told by the ordinary tests.",
        TARGETS.map(|target| target.name).join(", ")
    )
}

/// Tells stories as these words say.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (target, what) = match words[..] {
        ["--help" | "-h"] => {
            // A reader that has gone away is no failure.
            let _ = writeln!(io::stdout(), "{}", usage());
            return Ok(ExitCode::SUCCESS);
        }
        [target] => (target, What::New { minutes: 10 }),
        [target, "--minutes", minutes] => {
            (target, What::New { minutes: minutes.parse().map_err(|_| Error::Usage(usage()))? })
        }
        [target, file] if !file.starts_with('-') => (target, What::Again(file.into())),
        _ => return Err(Error::Usage(usage())),
    };
    let target =
        TARGETS.iter().find(|known| known.name == target).ok_or_else(|| Error::Usage(usage()))?;
    tell(&build(target.name)?, target, &what)
}

/// Which stories are told.
enum What {
    New { minutes: u32 },
    Again(PathBuf),
}

/// Builds the program of a target, and says where it is.
fn build(target: &str) -> Result<PathBuf, Error> {
    let machine = machine()?;
    let folder = root().join("fuzz");
    let mut command = cargo();
    command.args([
        "build",
        "--release",
        "--locked",
        "--bin",
        target,
        "--target",
        &machine,
        "--manifest-path",
    ]);
    // With a target of its own, what runs while it is built is not instrumented.
    let status = command.arg(folder.join("Cargo.toml")).env("RUSTFLAGS", FLAGS.join(" ")).status();
    let command = || "cargo build".to_owned();
    let status = status.map_err(|source| Error::Start { command: command(), source })?;
    if !status.success() {
        return Err(Error::Failed { command: command() });
    }
    Ok(folder.join("target").join(machine).join("release").join(target))
}

/// The machine that the compiler builds for, in its words.
fn machine() -> Result<String, Error> {
    let command = || "rustc -vV".to_owned();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| Error::Start { command: command(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Error::Failed { command: command() })
}

fn tell(program: &Path, target: &Target, what: &What) -> Result<ExitCode, Error> {
    let Target { name, begins_with, longest } = target;
    let mut command = Command::new(program);
    match what {
        What::Again(file) => command.arg(file),
        What::New { minutes } => {
            let folder = root().join("fuzz");
            let found = folder.join("target/found").join(name);
            let broken = folder.join("artifacts");
            for path in [&found, &broken] {
                fs::create_dir_all(path)
                    .map_err(|source| Error::Keep { path: path.clone(), source })?;
            }
            // libFuzzer adds to the first folder, and reads the others.
            command
                .arg(format!("-max_total_time={}", u64::from(*minutes) * 60))
                .arg(format!("-max_len={longest}"))
                .arg(format!("-artifact_prefix={}/{name}-", broken.display()))
                .args([found, root().join(begins_with)])
        }
    };
    let status = command.status();
    let status =
        status.map_err(|source| Error::Start { command: program.display().to_string(), source })?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "xtask: `cargo xtask fuzz {name} FILE` tells the story again, with the file that is named above"
    );
    Ok(ExitCode::FAILURE)
}
