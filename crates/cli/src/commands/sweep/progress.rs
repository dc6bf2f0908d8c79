//! The progress display of a sweep on standard error. On a terminal, it is a bar or a live heat
//! map. If standard error is not a terminal, it consists of lines of text.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_evidence::{Cell, PlannedRun, RunRecord, Start, notation};
use linerate_measure::{Observer, Progress, Store};
use linerate_report::{LiveMap, Style};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Approximate number of progress lines in a sweep, if standard error is not a terminal.
const LINES: u64 = 20;
/// Maximum time between two progress lines.
const SILENCE: Duration = Duration::from_secs(60);

/// Width of the progress bar in characters.
const BAR: usize = 24;

/// The display of a sweep's progress on standard error.
pub(super) struct ProgressDisplay {
    show: Display,
    folder: PathBuf,
    pace: Option<Pace>,
    /// The cell of the run in progress.
    now: Option<Cell>,
}

enum Display {
    Nothing,
    Lines { lines_printed: u64, at: Instant },
    Bar(ProgressBar),
    Live(Live),
}

/// A heat map that is redrawn in place.
struct Live {
    map: LiveMap,
    /// Number of lines of the screen that the present drawing occupies; 0 if there is none.
    drawn: usize,
    at: Option<Instant>,
}

/// Minimum time between two drawings of the live map.
const REDRAW: Duration = Duration::from_millis(250);

impl Live {
    /// Creates a heat map with the runs that the sweep has saved so far.
    fn of(store: &Store) -> Self {
        let design = store.plan().design();
        let mut map = LiveMap::new(&design);
        for run in store.runs() {
            map.add(run.cell(), run.bytes_per_second);
        }
        Self { map, drawn: 0, at: None }
    }

    /// Draws `line` and the map below it, in place of the previous drawing.
    fn draw(&mut self, line: &str) {
        let size = terminal_size::terminal_size_of(io::stderr());
        let (width, height) =
            size.map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)));
        let style = Style { colour: std::env::var_os("NO_COLOR").is_none(), width };
        let line: String = line.chars().take(width).collect();
        // The map is cut so that two rows of the terminal remain: one for `line` above the map, and
        // one for the cursor below it.
        let text = format!("{line}\n{}", self.map.text(style, height.saturating_sub(2)));
        self.erase();
        // Errors are ignored: the sweep continues if standard error is closed.
        let _ = write!(io::stderr(), "{text}");
        self.drawn = text.lines().count();
        self.at = Some(Instant::now());
    }

    /// Erases the drawing from the screen (ECMA-48: cursor up, erase to the end of the screen).
    fn erase(&mut self) {
        if self.drawn > 0 {
            let _ = write!(io::stderr(), "\x1b[{}A\r\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}

/// Reference point for estimating the remaining time: the time when this process began to measure,
/// and the number of runs that were complete then. A resumed sweep has complete runs at that time.
struct Pace {
    began: Instant,
    done: u64,
}

impl ProgressDisplay {
    /// Creates a display that suits standard error: on a terminal, a heat map if `watch` is true
    /// and a bar otherwise; lines of text elsewhere. The display prints nothing if `quiet` is true.
    pub(super) fn new(quiet: bool, watch: bool, store: &Store) -> Self {
        let show = if quiet {
            Display::Nothing
        } else if watch && io::stderr().is_terminal() {
            Display::Live(Live::of(store))
        } else if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            // The template is a constant and valid, so parsing it cannot fail. The default style
            // only avoids a panic.
            let style = ProgressStyle::with_template(&format!("{{bar:{BAR}}} {{msg}}"))
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            Display::Bar(bar.with_style(style))
        } else {
            Display::Lines { lines_printed: 0, at: Instant::now() }
        };
        Self { show, folder: store.folder().to_owned(), pace: None, now: None }
    }

    /// Prints a line, above the progress bar if there is one.
    fn print_line(&mut self, line: &str) {
        match &mut self.show {
            Display::Nothing => {}
            // Errors are ignored: the sweep continues if standard error is closed.
            Display::Lines { .. } | Display::Live(_) => drop(writeln!(io::stderr(), "{line}")),
            Display::Bar(bar) => bar.suspend(|| drop(writeln!(io::stderr(), "{line}"))),
        }
    }

    /// Estimates the remaining time from the average duration of the runs that this process has
    /// made. Returns `None` before its first run is complete.
    fn time_left(&self, progress: &Progress) -> Option<Duration> {
        let pace = self.pace.as_ref()?;
        let made = u32::try_from(progress.done - pace.done).ok().filter(|&made| made > 0)?;
        let left = u32::try_from(progress.total - progress.done).ok()?;
        Some(pace.began.elapsed() / made * left)
    }

    /// Returns the parts of a progress line: the number of complete runs, the remaining time and
    /// the best cell so far. Parts that are not known yet are omitted.
    fn state(&self, progress: &Progress) -> Vec<String> {
        let (done, total) = (notation::count(progress.done), notation::count(progress.total));
        let mut parts = vec![format!("{done} of {total} runs")];
        if let Some(left) = self.time_left(progress).filter(|_| progress.done < progress.total) {
            parts.push(format!("{} left", span(left)));
        }
        if let Some((cell, rate)) = progress.best {
            let (cell, rate) = (notation::cell(cell), notation::kilobytes(rate));
            parts.push(format!("best {cell}: {rate} KB/s"));
        }
        parts
    }
}

/// Joins parts with commas to a text of at most `width` characters. A part that does not fit is
/// left out as a whole.
fn fitting(parts: &[String], width: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let separator = if text.is_empty() { "" } else { ", " };
        let length = text.chars().count() + separator.len() + part.chars().count();
        if length <= width {
            text.push_str(separator);
            text.push_str(part);
        }
    }
    text
}

impl Observer for ProgressDisplay {
    fn begins(&mut self, start: &Start, progress: &Progress) {
        self.pace = Some(Pace { began: Instant::now(), done: progress.done });
        if let Display::Bar(bar) = &self.show {
            bar.set_length(progress.total);
        }
        self.print_line(&format!(
            "{} to make, saved in {}: {}",
            notation::plural(progress.total - progress.done, "run"),
            self.folder.display(),
            start.facts.bench.description
        ));
    }

    fn run_begins(&mut self, run: &PlannedRun, progress: &Progress) {
        self.now = Some(run.cell);
        if let Display::Bar(bar) = &self.show {
            bar.set_position(progress.done);
            let mut parts = self.state(progress);
            parts.push(format!("now {}", notation::cell(run.cell)));
            let width = terminal_size::terminal_size_of(io::stderr())
                .map_or(80, |(width, _)| usize::from(width.0));
            bar.set_message(fitting(&parts, width.saturating_sub(BAR + 1)));
        }
    }

    fn run_ended(&mut self, run: &RunRecord, progress: &Progress) {
        let line = self.state(progress).join(", ");
        if let Display::Live(live) = &mut self.show {
            if let Some(cell) = self.now {
                live.map.add(cell, run.bytes_per_second);
            }
            let is_due = live.at.is_none_or(|at| at.elapsed() >= REDRAW);
            if is_due || progress.done == progress.total {
                live.draw(&line);
            }
        }
        if let Display::Lines { lines_printed, at } = self.show {
            let steps = |runs: u64| runs * LINES / progress.total.max(1);
            let is_due = steps(progress.done) > steps(lines_printed) || at.elapsed() >= SILENCE;
            if is_due {
                self.print_line(&self.state(progress).join(", "));
                self.show = Display::Lines { lines_printed: progress.done, at: Instant::now() };
            }
        }
    }
}

/// Removes the progress bar or the heat map from the screen, before the report is printed.
impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        match &mut self.show {
            Display::Nothing | Display::Lines { .. } => {}
            Display::Bar(bar) => bar.finish_and_clear(),
            Display::Live(live) => live.erase(),
        }
    }
}

/// Formats a duration, rounded up to whole seconds: `48 s`, `3 min 10 s`, `2 h 5 min`.
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
    fn durations_are_formatted_to_the_second_and_long_ones_to_the_minute() {
        let formatted = |seconds: f64| span(Duration::from_secs_f64(seconds));
        assert_eq!(formatted(0.2), "1 s");
        assert_eq!(formatted(190.0), "3 min 10 s");
        assert_eq!(formatted(7_500.0), "2 h 5 min");
    }

    #[test]
    fn a_part_that_does_not_fit_is_left_out_as_a_whole() {
        let parts = ["4 of 8 runs", "3 min 10 s left", "best 8 × 8", "now 1 × 1"];
        let parts = parts.map(str::to_owned);
        assert_eq!(fitting(&parts, 80), "4 of 8 runs, 3 min 10 s left, best 8 × 8, now 1 × 1");
        assert_eq!(fitting(&parts, 40), "4 of 8 runs, 3 min 10 s left, best 8 × 8");
        assert_eq!(fitting(&parts, 23), "4 of 8 runs, best 8 × 8");
        assert_eq!(fitting(&parts, 5), "");
    }
}
