//! The heat map that is shown while a sweep runs.

use crate::paint::{Style, character, coloured, shade};
use linerate_evidence::stats::Sample;
use linerate_evidence::{BufferSize, Cell, Design, notation};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum width of a cell of the map in characters.
const WIDEST: usize = 4;

/// A heat map of the rates that a running sweep has measured so far.
#[derive(Clone, Debug)]
pub struct LiveMap {
    sends: Vec<BufferSize>,
    receives: Vec<BufferSize>,
    /// Rates of the completed runs of each cell, in bytes per second.
    rates: BTreeMap<Cell, Vec<f64>>,
}

impl LiveMap {
    /// Creates the map of a sweep with this design, of which no run is complete yet.
    #[must_use]
    pub fn new(design: &Design) -> Self {
        Self {
            sends: design.send_buffers.sizes().to_vec(),
            receives: design.receive_buffers.sizes().to_vec(),
            rates: BTreeMap::new(),
        }
    }

    /// Adds the rate of a completed run of `cell`, in bytes per second.
    pub fn add(&mut self, cell: Cell, bytes_per_second: f64) {
        self.rates.entry(cell).or_default().push(bytes_per_second);
    }

    /// Returns the map in at most `height` lines. A measured cell is shown as a percentage of the
    /// best cell, and an unmeasured cell as a dot. Rows and columns that do not fit are left out.
    #[must_use]
    pub fn text(&self, style: Style, height: usize) -> String {
        let median = |rates: &Vec<f64>| Some(Sample::new(rates.clone())?.median());
        let medians: BTreeMap<Cell, f64> =
            self.rates.iter().filter_map(|(&cell, rates)| Some((cell, median(rates)?))).collect();
        let best = medians.values().copied().fold(0.0, f64::max);
        let labels = self.sends.iter().map(|size| size.to_string().chars().count());
        let margin = labels.max().unwrap_or(0) + 2;
        let room = style.width.saturating_sub(margin).max(1);
        let columns: Vec<_> = thinned(&self.receives, room).collect();
        let width = (room / columns.len().max(1)).clamp(1, WIDEST);
        let mut text =
            format!("in per cent of the best cell, {} KB/s\n", notation::kilobytes(best));
        for send in thinned(&self.sends, height.saturating_sub(1).max(1)) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:>1$}  ", send.to_string(), margin - 2);
            for &receive in &columns {
                let share = medians.get(&Cell { send, receive }).map(|median| median / best);
                text.push_str(&entry(share, style, width));
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

/// Returns at most `room` sizes: all sizes, or every n-th size if there are more than `room`.
fn thinned(sizes: &[BufferSize], room: usize) -> impl Iterator<Item = BufferSize> {
    sizes.iter().copied().step_by(sizes.len().div_ceil(room).max(1))
}

/// Formats a cell whose rate is `share` of the best rate; `None` for an unmeasured cell.
fn entry(share: Option<f64>, style: Style, width: usize) -> String {
    let Some(share) = share.filter(|share| share.is_finite()) else {
        return format!("{:>width$}", "·");
    };
    let shade = shade(share);
    if !style.colour {
        return format!("{:>width$}", character(shade));
    }
    let figure = if width > 2 { format!("{:>width$.0}", share * 100.0) } else { " ".repeat(width) };
    coloured(&figure, shade)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::sample_data::square_design;

    #[test]
    fn cells_without_runs_are_dots_and_the_map_fits() {
        let mut map = LiveMap::new(&square_design(17));
        let style = Style { colour: false, width: 60 };
        assert!(map.text(style, 24).contains("\n 9    ·  ·"), "{}", map.text(style, 24));
        let size = |packets: u32| BufferSize::Packets(packets.try_into().unwrap());
        for (send, rate) in [(1, 2e6), (9, 4e6), (9, 6e6), (17, 1e7)] {
            map.add(Cell { send: size(send), receive: size(1) }, rate);
        }
        let text = map.text(style, 24);
        assert!(text.starts_with("in per cent of the best cell, 9,766 KB/s\n"), "{text}");
        assert!(text.contains("\n 9    +  ·") && text.contains("\n17    @  ·"), "{text}");
        let small = map.text(Style { colour: true, width: 20 }, 7);
        assert!(small.lines().count() <= 7, "{small}");
        for line in map.text(Style { width: 20, ..style }, 7).lines().skip(1) {
            assert!(line.chars().count() <= 20, "{line}");
        }
    }
}
