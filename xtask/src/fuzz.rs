//! `cargo xtask fuzz`: fuzzing with libFuzzer, guided by code coverage. The fuzz programs are a
//! separate workspace, because coverage with the stable compiler needs special flags for the whole
//! build.

use crate::error::Error;
use crate::workspace::{cargo, root, target_directory};
use std::fs;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// A fuzz program and its parameters.
struct Target {
    /// The name of the program.
    name: &'static str,
    /// The folder with the inputs from which fuzzing starts.
    initial_inputs: &'static str,
    /// Maximum length of an input in bytes. Longer inputs take more time, but find no faults that
    /// shorter ones cannot find.
    max_length: u32,
}

/// Minutes for which a fuzz program runs by default.
const DEFAULT_MINUTES: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The manifest of the fuzz programs.
const MANIFEST: &str = "fuzz/Cargo.toml";

const TARGETS: [Target; 8] = [
    Target {
        name: "segments_into_a_connection",
        initial_inputs: "fuzz/corpus/segments_into_a_connection",
        max_length: 1_024,
    },
    Target {
        name: "frames_into_a_host",
        initial_inputs: "fuzz/corpus/frames_into_a_host",
        max_length: 1_024,
    },
    Target {
        name: "fragments_into_a_host",
        initial_inputs: "fuzz/corpus/fragments_into_a_host",
        max_length: 1_024,
    },
    Target {
        name: "neighbor_discovery_into_a_host",
        initial_inputs: "fuzz/corpus/neighbor_discovery_into_a_host",
        max_length: 1_024,
    },
    Target {
        name: "dhcp_into_a_client",
        initial_inputs: "fuzz/corpus/dhcp_into_a_client",
        max_length: 1_024,
    },
    Target {
        name: "bytes_into_a_serial_line",
        initial_inputs: "fuzz/corpus/bytes_into_a_serial_line",
        max_length: 1_024,
    },
    Target { name: "text_into_a_script", initial_inputs: "scripts", max_length: 4_096 },
    Target { name: "text_into_a_world", initial_inputs: "crates/sim/scenarios", max_length: 4_096 },
];

/// Compiler flags that count every edge of the control flow, and report the operands of comparisons
/// to libFuzzer.
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
usage: cargo xtask fuzz TARGET [--minutes N]    tries new inputs for N minutes
       cargo xtask fuzz TARGET FILE             repeats one input

N is {DEFAULT_MINUTES} by default.
TARGET: {}
Fuzzing needs a C++ compiler, for libFuzzer. An input that fails is stored in fuzz/artifacts. The
ordinary tests run the inputs of segments, frames and serial lines in fuzz/corpus.",
        TARGETS.map(|target| target.name).join(", ")
    )
}

/// Runs the fuzz program that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Error> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (target, inputs) = match words[..] {
        ["--help" | "-h"] => {
            // Printing the usage fails if the output is a closed pipe, such as `| head`. This is no
            // error.
            let _ = writeln!(io::stdout(), "{}", usage());
            return Ok(ExitCode::SUCCESS);
        }
        [target] => (target, Inputs::New { minutes: DEFAULT_MINUTES }),
        [target, "--minutes", minutes] => {
            (target, Inputs::New { minutes: minutes.parse().map_err(|_| Error::Usage(usage()))? })
        }
        [target, file] if !file.starts_with('-') => (target, Inputs::File(file.into())),
        _ => return Err(Error::Usage(usage())),
    };
    let target =
        TARGETS.iter().find(|known| known.name == target).ok_or_else(|| Error::Usage(usage()))?;
    execute(&build(target.name)?, target, &inputs)
}

/// The inputs with which a fuzz program runs: those that libFuzzer generates during this number of
/// minutes, or a single input from a file.
enum Inputs {
    // The number is not zero, because libFuzzer takes zero as an unlimited time.
    New { minutes: NonZeroU32 },
    File(PathBuf),
}

/// Builds a fuzz program, and returns its path.
fn build(target: &str) -> Result<PathBuf, Error> {
    let machine = machine()?;
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
    // The command names the triple of this machine by `--target`, although that is the default.
    // This makes cargo apply RUSTFLAGS only to the fuzz program, and not to build scripts and
    // procedural macros.
    let status = command.arg(root().join(MANIFEST)).env("RUSTFLAGS", FLAGS.join(" ")).status();
    let command = || "cargo build".to_owned();
    let status = status.map_err(|source| Error::Start { command: command(), source })?;
    if !status.success() {
        return Err(Error::Failed { command: command() });
    }
    program(cargo(), &machine, target)
}

/// Returns the path of a built fuzz program.
fn program(cargo: Command, machine: &str, target: &str) -> Result<PathBuf, Error> {
    Ok(target_directory(cargo, MANIFEST)?.join(machine).join("release").join(target))
}

/// Returns the target triple of this machine.
fn machine() -> Result<String, Error> {
    let command = || "rustc -vV".to_owned();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| Error::Start { command: command(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Error::Failed { command: command() })
}

fn execute(program: &Path, target: &Target, inputs: &Inputs) -> Result<ExitCode, Error> {
    let Target { name, initial_inputs, max_length } = target;
    let mut command = Command::new(program);
    match inputs {
        Inputs::File(file) => command.arg(file),
        Inputs::New { minutes } => {
            let found = target_directory(cargo(), MANIFEST)?.join("found").join(name);
            let broken = root().join("fuzz/artifacts");
            for path in [&found, &broken] {
                fs::create_dir_all(path)
                    .map_err(|source| Error::Write { path: path.clone(), source })?;
            }
            // The first folder receives the inputs that libFuzzer finds. The second folder has the
            // initial inputs, which libFuzzer only reads.
            command
                .arg(format!("-max_total_time={}", u64::from(minutes.get()) * 60))
                .arg(format!("-max_len={max_length}"))
                .arg(format!("-artifact_prefix={}/{name}-", broken.display()))
                .args([found, root().join(initial_inputs)])
        }
    };
    let status = command.status();
    let status =
        status.map_err(|source| Error::Start { command: program.display().to_string(), source })?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "xtask: `cargo xtask fuzz {name} FILE` repeats the failure, with the file named above"
    );
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_in_the_target_directory_of_the_environment() {
        let mut other_target = cargo();
        other_target.env("CARGO_TARGET_DIR", "/other_target");
        let program = program(other_target, "machine", "frames_into_a_host").unwrap();
        assert_eq!(program, Path::new("/other_target/machine/release/frames_into_a_host"));
    }
}
