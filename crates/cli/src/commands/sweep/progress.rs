//! What a person sees while the night lasts: a bar on a terminal, a line now and then elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_evidence::{PlannedRun, RunRecord, Start, notation};
use linerate_measure::{Observer, Progress};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Elsewhere than on a terminal there are about so many lines, however long the night.
const LINES: u64 = 20;
/// But no silence longer than this.
const SILENCE: Duration = Duration::from_secs(60);

/// Watches a night for a person.
pub(super) struct Watcher {
    show: Show,
    folder: PathBuf,
    pace: Option<Pace>,
}

enum Show {
    Nothing,
    Lines { told: u64, at: Instant },
    Bar(ProgressBar),
}

/// When the night began, and with how many runs already made.
struct Pace {
    began: Instant,
    done: u64,
}

impl Watcher {
    /// Watches as the standard error allows; not at all if `quiet`.
    pub(super) fn new(quiet: bool, folder: &Path) -> Self {
        let show = if quiet {
            Show::Nothing
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            // The template is a constant, and right.
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            Show::Bar(bar.with_style(style))
        } else {
            Show::Lines { told: 0, at: Instant::now() }
        };
        Self { show, folder: folder.to_owned(), pace: None }
    }

    /// Above the bar, or as a line.
    fn say(&self, line: &str) {
        match &self.show {
            Show::Nothing => {}
            // Nobody is left to tell if standard error is closed.
            Show::Lines { .. } => drop(writeln!(io::stderr(), "{line}")),
            Show::Bar(bar) => bar.suspend(|| drop(writeln!(io::stderr(), "{line}"))),
        }
    }

    /// How much longer it takes, if the runs to come are like those that were made.
    fn time_left(&self, progress: &Progress) -> Option<Duration> {
        let pace = self.pace.as_ref()?;
        let made = u32::try_from(progress.done - pace.done).ok().filter(|&made| made > 0)?;
        let left = u32::try_from(progress.total - progress.done).ok()?;
        Some(pace.began.elapsed() / made * left)
    }

    /// Runs done, time left, live best.
    fn state(&self, progress: &Progress) -> String {
        let mut text = format!(
            "{} of {} runs",
            notation::count(progress.done),
            notation::count(progress.total)
        );
        if let Some(left) = self.time_left(progress).filter(|_| progress.done < progress.total) {
            text.push_str(&format!(", {} left", span(left)));
        }
        if let Some((cell, rate)) = progress.best {
            text.push_str(&format!(
                ", best {}: {} KB/s",
                notation::cell(cell),
                notation::kilobytes(rate)
            ));
        }
        text
    }
}

impl Observer for Watcher {
    fn begins(&mut self, start: &Start, progress: &Progress) {
        self.pace = Some(Pace { began: Instant::now(), done: progress.done });
        if let Show::Bar(bar) = &self.show {
            bar.set_length(progress.total);
        }
        self.say(&format!(
            "{} to make, kept in {}: {}",
            notation::plural(progress.total - progress.done, "run"),
            self.folder.display(),
            start.facts.bench.description
        ));
    }

    fn run_begins(&mut self, run: &PlannedRun, progress: &Progress) {
        if let Show::Bar(bar) = &self.show {
            bar.set_position(progress.done);
            bar.set_message(format!("{}, now {}", self.state(progress), notation::cell(run.cell)));
        }
    }

    fn run_ended(&mut self, _: &RunRecord, progress: &Progress) {
        if let Show::Lines { told, at } = self.show {
            let steps = |runs: u64| runs * LINES / progress.total.max(1);
            let is_due = steps(progress.done) > steps(told) || at.elapsed() >= SILENCE;
            if is_due {
                self.say(&self.state(progress));
                self.show = Show::Lines { told: progress.done, at: Instant::now() };
            }
        }
    }
}

/// The bar makes room for the report.
impl Drop for Watcher {
    fn drop(&mut self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

/// A span to the second: `48 s`, `3 min 10 s`, `2 h 5 min`.
fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64().ceil();
    let minutes = (seconds / 60.0).floor();
    if seconds < 60.0 {
        format!("{seconds:.0} s")
    } else if minutes < 60.0 {
        format!("{minutes:.0} min {:.0} s", seconds - minutes * 60.0)
    } else {
        let hours = (minutes / 60.0).floor();
        format!("{hours:.0} h {:.0} min", minutes - hours * 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_to_the_second_and_long_ones_to_the_minute() {
        let told = |seconds: f64| span(Duration::from_secs_f64(seconds));
        assert_eq!(told(0.2), "1 s");
        assert_eq!(told(190.0), "3 min 10 s");
        assert_eq!(told(7_500.0), "2 h 5 min");
    }
}
