//! Rounds in which two networks run the same programs in turn, measured in processor time.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Number of rounds after a warm-up round.
const ROUNDS: usize = 9;

/// The name of a program, and a function that runs it once.
pub(crate) type Measure = (&'static str, fn());

/// Runs each program on both networks in turn, and prints a line for each program. The line has the
/// processor times of both networks in milliseconds, and the ratio of the first time to the second
/// within a round. Each figure is a median, with the minimum and the maximum in brackets.
pub(crate) fn compare<const N: usize>(
    (ours, first): (&str, &[Measure; N]),
    (theirs, second): (&str, &[Measure; N]),
) {
    println!("processor time: median (least to most) of {ROUNDS} rounds");
    for (&(name, run_ours), &(_, run_theirs)) in first.iter().zip(second) {
        let (mut one, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let times = (timed(run_ours), timed(run_theirs));
            // The first round is a warm-up and is not counted.
            if round > 0 {
                one.push(times.0.as_secs_f64() * 1e3);
                other.push(times.1.as_secs_f64() * 1e3);
                ratios.push(times.0.as_secs_f64() / times.1.as_secs_f64());
            }
        }
        println!(
            "{name}: {ours} {} ms, {theirs} {} ms, ratio {}",
            Spread::of(one),
            Spread::of(other),
            Spread::of(ratios)
        );
    }
}

/// The median of several values, with the minimum and the maximum.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let (least, most) = (figures[0], figures[figures.len() - 1]);
        Self { median: figures[figures.len() / 2], least, most }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ({:.3} to {:.3})", self.median, self.least, self.most)
    }
}

/// Returns the processor time that all threads of this process use for one run, in user and kernel
/// mode.
fn timed(run: fn()) -> Duration {
    let start = processor_time();
    run();
    processor_time().saturating_sub(start)
}

fn processor_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0))
}
