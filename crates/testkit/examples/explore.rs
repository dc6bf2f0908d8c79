//! Explores random worlds: see `cargo xtask explore --help`.

#![allow(clippy::print_stdout, reason = "it reports to people")]

use linerate_testkit::explore::{Case, Coverage};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, panic, thread};

const USAGE: &str = "\
usage: cargo xtask explore --minutes N [--seed S]
       cargo xtask explore --seed S --case N [--simpler BITS]

Runs random worlds in virtual time and checks all invariants: two connections or two hosts with any
configuration, any network, and applications of any behaviour. With --case it repeats one of them.

  --minutes N     how long; fractions are allowed
  --seed S        seed of the sequence of worlds [default: drawn from the clock, and printed]
  --case N        the one world of that number
  --simpler BITS  without what these bits leave out, as a failure prints them";

#[derive(Default)]
struct Arguments {
    minutes: Option<f64>,
    seed: Option<u64>,
    case: Option<u64>,
    simpler: u64,
}

fn arguments() -> Option<Arguments> {
    let mut arguments = Arguments::default();
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--minutes" => {
                arguments.minutes = Some(value.parse().ok().filter(|&minutes| minutes >= 0.0)?);
            }
            "--seed" => arguments.seed = Some(value.parse().ok()?),
            "--case" => arguments.case = Some(value.parse().ok()?),
            "--simpler" => arguments.simpler = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(arguments)
}

fn main() -> ExitCode {
    match arguments() {
        Some(Arguments { minutes: None, seed: Some(seed), case: Some(number), simpler }) => {
            repeat(Case { seed, number, simpler })
        }
        Some(Arguments { minutes: Some(minutes), seed, case: None, simpler: 0 }) => {
            let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let seed = seed.unwrap_or_else(|| clock().map_or(1, |since| since.as_secs()));
            explore(seed, Duration::from_secs_f64((minutes * 60.0).min(1e9)))
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Prints the description of a world, and then runs this world. A panic in the run is not caught,
/// so its message and backtrace are printed.
fn repeat(case: Case) -> ExitCode {
    println!("{:?}", case.world());
    println!("{}", case.run());
    ExitCode::SUCCESS
}

fn explore(seed: u64, span: Duration) -> ExitCode {
    println!("seed {seed}");
    let (start, next) = (Instant::now(), AtomicU64::new(0));
    let (seen, failure) = (Mutex::new(Coverage::default()), Mutex::new(None));
    // The search for a simpler world panics many times, so the messages of panics are suppressed. A
    // failure is reported with a command that repeats it and prints its message.
    panic::set_hook(Box::new(|_| {}));
    let work = || {
        while start.elapsed() < span
            && failure.lock().unwrap_or_else(PoisonError::into_inner).is_none()
        {
            let case = Case { seed, number: next.fetch_add(1, Ordering::Relaxed), simpler: 0 };
            match case.judge() {
                Ok(coverage) => seen.lock().unwrap_or_else(PoisonError::into_inner).add(&coverage),
                Err(cause) => {
                    failure
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert((case, cause));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let worlds = next.into_inner();
    println!("{}", seen.into_inner().unwrap_or_else(PoisonError::into_inner));
    println!(
        "{worlds} worlds in {:.0} s, {:.0} a second",
        start.elapsed().as_secs_f64(),
        worlds as f64 / start.elapsed().as_secs_f64()
    );
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        None => ExitCode::SUCCESS,
        Some((case, cause)) => {
            report(case, &cause);
            ExitCode::FAILURE
        }
    }
}

fn report(case: Case, cause: &str) {
    println!("\na world has failed: {}", cause.lines().next().unwrap_or_default());
    println!("  cargo xtask explore {case}");
    let least = case.shrink();
    if least != case {
        let cause = least.judge().err().unwrap_or_default();
        println!("with less in it it fails, too: {}", cause.lines().next().unwrap_or_default());
        println!("  cargo xtask explore {least}");
    }
}
