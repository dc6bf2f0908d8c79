//! `cargo xtask verdict`: creates paths with known limits, diagnoses each path with `linerate why`,
//! and prints how often each limit was named.
//!
//! A plant is a path with one deliberate limit, such as a small send buffer. Limits of the kernel's
//! TCP are planted on the loopback device, and between two network namespaces of this process. The
//! namespaces are connected by a veth pair, or by a relay with impairments between two TAP devices.
//! Limits of linerate's TCP are planted in simulated networks and inside one process. If
//! `linerate why` names a limit other than the planted one, the program fails. The answers
//! `contended` and `not-identified` are no failure.
//!
//! ```sh
//! cargo xtask verdict                    # all plants, for about 35 minutes
//! cargo xtask verdict sim                # plants whose name begins with `sim`
//! cargo xtask verdict sim reports        # keeps the JSON reports in the folder `reports`
//! cargo xtask verdict --seed 1           # plants whose values the seed determines, 15 minutes
//! ```

#![allow(clippy::print_stdout, reason = "the program prints its table")]

mod plants;
mod program;
mod relay;

use clap::Parser;
use linerate_link::KernelInterface;
use linerate_link::namespace::{Isolation, enter};
use plants::{Place, Plant};
use program::{Ended, SECONDS, ask};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

/// First argument that makes this program the bystander: a process that keeps a CPU busy half of
/// the time. Diagnoses beside the bystander have names that begin with this word.
const BYSTANDER: &str = "bystander";

/// Creates paths with known limits, diagnoses each path with `linerate why`, and prints how often
/// each limit was named.
///
/// A wrong name fails the program; `contended` and `not-identified` do not. All plants take about
/// 35 minutes, on a machine that does nothing else.
#[derive(Parser)]
#[command(bin_name = "cargo xtask verdict")]
struct Options {
    /// Only plants whose name begins with this word
    #[arg(default_value = "")]
    word: String,
    /// Keeps the JSON reports in this folder
    folder: Option<PathBuf>,
    /// Plants whose strength, round-trip time and congestion control this seed determines, in place
    /// of those with fixed values
    #[arg(long)]
    seed: Option<u64>,
}

/// Keeps a CPU busy half of the time, while another process is diagnosed.
fn bystand() -> ! {
    const HALF: Duration = Duration::from_millis(10);
    loop {
        let began = Instant::now();
        while began.elapsed() < HALF {
            std::hint::spin_loop();
        }
        thread::sleep(HALF);
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some(BYSTANDER) {
        bystand();
    }
    let Options { word, folder: kept, seed } = Options::parse();
    // The program needs a user namespace of its own. The system call for it fails if the process
    // has several threads, so no thread may have been started before.
    enter(Isolation::UserAndNetwork)?;
    KernelInterface::loopback()?.set_up()?;
    if let Some(kept) = &kept {
        std::fs::create_dir_all(kept)?;
    }
    let folder = tempfile::tempdir()?;
    let mut matrix: BTreeMap<(&str, String), u32> = BTreeMap::new();
    let plants = seed.map_or_else(plants::fixed, plants::drawn);
    let alone = plants.iter().map(|plant| (plant.name.clone(), false, plant));
    // Each path of the kernel's TCP is diagnosed a second time, while the bystander process uses a
    // CPU half of the time. That diagnosis need not name a limit, but must not name a wrong one.
    let disturbed = plants
        .iter()
        .filter(|plant| matches!(plant.place, Place::Kernel(_) | Place::Loopback { .. }))
        .map(|plant| (format!("{BYSTANDER}-{}", plant.name), true, plant));
    for (name, is_disturbed, plant) in
        alone.chain(disturbed).filter(|(name, ..)| name.starts_with(&word))
    {
        let folder = kept.as_deref().unwrap_or_else(|| folder.path());
        let number: u32 = matrix.values().sum();
        let json = folder.join(format!("{number:02}-{name}.json"));
        let _bystander = if is_disturbed {
            Some(Ended(Command::new(std::env::current_exe()?).arg(BYSTANDER).spawn()?))
        } else {
            None
        };
        let named = diagnose(plant, &json)?;
        println!("{name:<26} planted {:<18} named {named:<18} {plant}", plant.limit);
        *matrix.entry((plant.limit, named)).or_default() += 1;
    }
    if matrix.is_empty() {
        eprintln!("error: no plant has a name that begins with '{word}'");
        return Ok(ExitCode::from(2));
    }
    Ok(report(&matrix))
}

/// Creates the path of the plant, and returns the limit that `linerate why` names.
fn diagnose(plant: &Plant, json: &Path) -> Result<String, Box<dyn Error>> {
    let why = &plant.why;
    match &plant.place {
        Place::Simulated(scenario) => ask(&format!("--on {scenario} {why}"), json),
        Place::Inside(on) => ask(&format!("--on {on} --seconds {SECONDS} {why}"), json),
        Place::Loopback { sink } => {
            let _sink = Ended::sink(&format!("--listen 127.0.0.1:1988 {sink}"))?;
            ask(&format!("127.0.0.1 --seconds {SECONDS} {why}"), json)
        }
        Place::Kernel(kernel) => relay::diagnose(kernel, why, json),
    }
}

/// Prints the matrix of planted and named limits. Returns failure if a limit was named wrongly.
fn report(matrix: &BTreeMap<(&str, String), u32>) -> ExitCode {
    println!("\n{:<18}{:<18}times", "planted", "named");
    let (mut right, mut wrong, mut all) = (0, 0, 0);
    for ((planted, named), &times) in matrix {
        println!("{planted:<18}{named:<18}{times}");
        all += times;
        match named.as_str() {
            name if name == *planted => right += times,
            "contended" | "not-identified" => {}
            _ => wrong += times,
        }
    }
    println!("\nof {all}: {right} named, {wrong} named wrongly, {} open", all - right - wrong);
    if wrong > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
