//! Rounds of paired measurements in processor time.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Number of rounds after the warm-up.
const ROUNDS: usize = 9;

/// The name of a program, and a function that runs it once.
pub(crate) type Measure = (&'static str, fn());

/// Runs each program on both networks in turn, and prints a line for each of them. The second
/// figure in brackets is the ratio of the first network's time to the second's in one round.
pub(crate) fn compare<const N: usize>(
    (ours, first): (&str, &[Measure; N]),
    (theirs, second): (&str, &[Measure; N]),
) {
    println!("processor time: median (least to most) of {ROUNDS} rounds");
    for (&(name, run_ours), &(_, run_theirs)) in first.iter().zip(second) {
        let (mut one, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let times = (timed(run_ours), timed(run_theirs));
            // The first round is a warm-up.
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

/// The median of several figures, with the least and the most.
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

/// Returns the processor time of the process, in user and kernel mode, for one run.
fn timed(run: fn()) -> Duration {
    let start = processor_time();
    run();
    processor_time().saturating_sub(start)
}

fn processor_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or(0))
}
