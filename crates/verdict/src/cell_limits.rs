//! The limit of each cell of a sweep: one socket buffer, both socket buffers, or another factor.
//!
//! The limit of a cell follows from the rates of other cells. The effect of doubling the send
//! buffer is seen in the cell with twice the send buffer and an equal receive buffer. The effect of
//! doubling the receive buffer is found likewise. If the sweep has no buffer of exactly twice the
//! size, the nearest size is used, and its effect is converted to that of doubling. The conversion
//! assumes that the rate is a power of the buffer size.

use crate::diagnosis::{CONTENDED_SHARE, Effect, Limit, limit_of_cell};
use crate::sweep::Sweep;
use crate::table::CellSummary;
use linerate_evidence::stats::as_f64;
use linerate_evidence::{
    BufferSize, Cell, Change, ConnectionEvidence, Counters, EndCounters, EndEvidence, RunEvidence,
    RunRecord, ThreadEvidence, names,
};

/// Minimum ratio of two rates that counts as a gain. The finding about saturation uses the same
/// value, so that it does not contradict the finding about limits.
const GAIN: f64 = 1.05;
/// Minimum factor by which doubling a buffer must raise the rate, for the buffer to count as a
/// limit. If only doubling both buffers together raises the rate, it must do so by this factor.
const RAISES: f64 = 1.2;
/// Minimum ratio of two buffer sizes for which the effect of changing from one size to the other is
/// converted to the effect of doubling. The conversion enlarges noise: with a ratio of 1.25, a
/// random difference of 7 % would become 23 %, which is above [`RAISES`].
const LEAST_RATIO: f64 = 1.5;

/// Factor by which a buffer is to be smaller in the cell to compare with, if the sweep has no
/// larger buffer. Only sizes that are smaller by at least [`LEAST_RATIO`] are admitted. The factor
/// is above 1/[`LEAST_RATIO`], so the nearest admitted size is always the largest one.
const NEXT_SMALLER: f64 = 0.8;

/// The limits of the throughput of one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellLimit {
    /// The cell: its send and receive buffer sizes.
    pub cell: Cell,
    /// The limits of the cell. Both buffers appear if each of them alone limits the rate, or if the
    /// rate rises only when both are doubled together. The list is empty if no limit is identified.
    pub limits: Vec<Limit>,
    /// Do larger buffers gain nothing? They gain nothing if no uncontended cell with a larger
    /// buffer, and no smaller one, is more than 5 % faster than this cell. If there are no such
    /// cells, this cell must not be more than 5 % faster than the cells with the next smaller
    /// buffers.
    pub is_flat: bool,
}

/// Returns the limits of every measured cell, in row-major order.
#[must_use]
pub fn cell_limits(sweep: &Sweep<'_>) -> Vec<CellLimit> {
    let link = sweep.start.facts.bench.line_rate.as_ref();
    let link = link.map(|rate| as_f64(rate.bits_per_second));
    sweep.table.iter().map(|cell| of_cell(sweep, cell, link)).collect()
}

fn of_cell(sweep: &Sweep<'_>, cell: &CellSummary<'_>, link: Option<f64>) -> CellLimit {
    let surface = Surface { sweep, cell };
    let is_flat = surface.is_flat();
    let is_buffer = |limit| matches!(limit, Limit::SendBuffer | Limit::ReceiveBuffer);
    let named = limit_of_cell(&evidence(cell, link), &surface.effects());
    let limits = if cell.is_contended {
        vec![Limit::Contended]
    } else if let Some(limit) = named.filter(|&limit| !(is_flat && is_buffer(limit))) {
        vec![limit]
    } else if !is_flat && surface.needs_both() {
        vec![Limit::SendBuffer, Limit::ReceiveBuffer]
    } else {
        Vec::new()
    };
    CellLimit { cell: cell.cell, limits, is_flat }
}

/// A cell, and the sweep whose other cells it is compared with.
struct Surface<'a> {
    sweep: &'a Sweep<'a>,
    cell: &'a CellSummary<'a>,
}

impl Surface<'_> {
    fn bytes(&self, size: BufferSize) -> f64 {
        as_f64(size.bytes(self.sweep.start.facts.bench.segment_payload))
    }

    /// Returns the element of `sizes` that is nearest to `factor` times `size`. If `factor` is
    /// above 1, the element is at least [`LEAST_RATIO`] times as large as `size`. Otherwise `size`
    /// is at least that many times as large as the element. Returns `None` if `sizes` has no such
    /// element.
    fn other(&self, sizes: &[BufferSize], size: BufferSize, factor: f64) -> Option<BufferSize> {
        let target = self.bytes(size) * factor;
        let distance = |other: BufferSize| (self.bytes(other) / target).ln().abs();
        let is_on_side = |other: BufferSize| {
            let ratio = self.bytes(other) / self.bytes(size);
            if factor > 1.0 { ratio >= LEAST_RATIO } else { ratio <= 1.0 / LEAST_RATIO }
        };
        let others = sizes.iter().copied().filter(|&other| is_on_side(other));
        others.min_by(|&one, &other| distance(one).total_cmp(&distance(other)))
    }

    fn send(&self, factor: f64) -> Option<BufferSize> {
        self.other(self.sweep.table.sends(), self.cell.cell.send, factor)
    }

    fn receive(&self, factor: f64) -> Option<BufferSize> {
        self.other(self.sweep.table.receives(), self.cell.cell.receive, factor)
    }

    fn summary(&self, send: BufferSize, receive: BufferSize) -> Option<&CellSummary<'_>> {
        self.sweep.table.get(send, receive).filter(|cell| !cell.is_contended)
    }

    /// Returns the effects of doubling and halving each buffer. An effect is omitted if the sweep
    /// has no cell that shows it, or if that cell is contended.
    fn effects(&self) -> Vec<Effect> {
        let Cell { send, receive } = self.cell.cell;
        let changes = [
            (Change::SendBufferLarger, self.send(2.0).map(|send| (send, receive)), 1.0),
            (Change::SendBufferHalved, self.send(0.5).map(|send| (send, receive)), -1.0),
            (Change::ReceiveBufferLarger, self.receive(2.0).map(|receive| (send, receive)), 1.0),
            (Change::ReceiveBufferHalved, self.receive(0.5).map(|receive| (send, receive)), -1.0),
        ];
        let effect = |(change, other, sign): (Change, Option<(BufferSize, BufferSize)>, f64)| {
            let (other_send, other_receive) = other?;
            let other = self.summary(other_send, other_receive)?;
            let grown = self.bytes(other_send) / self.bytes(send) * self.bytes(other_receive)
                / self.bytes(receive);
            self.effect(change, other, sign / grown.log2())
        };
        changes.into_iter().filter_map(effect).collect()
    }

    /// Returns the effect of changing from this cell to `other`: the ratio of the rate of `other`
    /// to the rate of this cell, raised to `power`. The power converts the effect to that of a
    /// buffer of exactly twice or half the size. The lower bound of the effect compares the lower
    /// bound of `other` with the upper bound of this cell. The upper bound does the reverse.
    /// Returns `None` if a rate of this cell is 0.
    fn effect(&self, change: Change, other: &CellSummary<'_>, power: f64) -> Option<Effect> {
        let ratio = |above: f64, below: f64| (below > 0.0).then(|| (above / below).powf(power));
        Some(Effect {
            change,
            ratio: ratio(other.median(), self.cell.median())?,
            low: ratio(other.interval.low, self.cell.interval.high)?,
            high: ratio(other.interval.high, self.cell.interval.low)?,
            losses: None,
            queue_ratio: None,
        })
    }

    /// Do both buffers limit the rate? They do if a larger send buffer alone raises the rate, and
    /// so does a larger receive buffer alone. They also do if neither alone raises it, but both
    /// together.
    fn needs_both(&self) -> bool {
        let is_raised = |effect: &Effect| effect.ratio >= RAISES && effect.low > 1.0;
        let single = self.single_effects();
        let raising = single.iter().filter(|effect| is_raised(effect)).count();
        if raising > 0 {
            return raising > 1;
        }
        let Cell { send, receive } = self.cell.cell;
        let (Some(more_send), Some(more_receive)) = (self.send(2.0), self.receive(2.0)) else {
            return false;
        };
        let growth = (self.bytes(more_send) / self.bytes(send))
            .min(self.bytes(more_receive) / self.bytes(receive));
        // `effect` requires an intervention (`Change`), but `is_raised` uses only the resulting
        // ratio. Any intervention can therefore be given.
        let effect = self
            .summary(more_send, more_receive)
            .and_then(|other| self.effect(Change::SendBufferLarger, other, 1.0 / growth.log2()));
        effect.as_ref().is_some_and(is_raised)
    }

    /// Returns the effects of a larger send buffer alone, and of a larger receive buffer alone.
    fn single_effects(&self) -> Vec<Effect> {
        let is_larger = |effect: &Effect| {
            matches!(effect.change, Change::SendBufferLarger | Change::ReceiveBufferLarger)
        };
        self.effects().into_iter().filter(is_larger).collect()
    }

    /// Do larger buffers gain nothing, as [`CellLimit::is_flat`] defines it? If no uncontended cell
    /// has larger buffers, this cell is compared with two smaller cells. One has the next smaller
    /// send buffer, the other the next smaller receive buffer. Both must exist and be uncontended.
    fn is_flat(&self) -> bool {
        let Cell { send, receive } = self.cell.cell;
        let larger = |other: &&CellSummary<'_>| {
            other.cell != self.cell.cell && other.cell.send >= send && other.cell.receive >= receive
        };
        // Contended cells are not compared, because their rates also depend on how much processor
        // time other programs left to the runs.
        let uncontended = self.sweep.table.iter().filter(|other| !other.is_contended);
        let mut larger = uncontended.filter(larger).peekable();
        if larger.peek().is_none() {
            let smaller = [
                self.send(NEXT_SMALLER).map(|send| (send, receive)),
                self.receive(NEXT_SMALLER).map(|receive| (send, receive)),
            ];
            let is_equal = |(send, receive)| {
                let other = self.summary(send, receive);
                other.is_some_and(|other| other.median() * GAIN > self.cell.median())
            };
            return smaller.into_iter().all(|other| other.is_some_and(is_equal));
        }
        larger.all(|other| other.median() < self.cell.median() * GAIN)
    }
}

/// Returns the counters of a cell in the form of the evidence of one run, to which the rules of a
/// diagnosis can be applied. Counters are means over the cell's uncontended runs, except where sums
/// are noted. The throughput is the cell's median.
fn evidence(cell: &CellSummary<'_>, link: Option<f64>) -> RunEvidence {
    let is_fair = |run: &&&RunRecord| {
        run.counters.contended_share().is_none_or(|share| share <= CONTENDED_SHARE)
    };
    let runs: Vec<&RunRecord> = cell.runs.iter().filter(is_fair).copied().collect();
    let seconds = mean(runs.iter().map(|run| Some(run.seconds)));
    let end = |of: fn(&Counters) -> &EndCounters| {
        let total = |name| {
            let counts = runs.iter().map(|run| of(&run.counters).get(name));
            counts.sum::<Option<u64>>().filter(|_| !runs.is_empty())
        };
        let each = |name| total(name).map(|sum| sum / (runs.len() as u64).max(1));
        // The counters of the thread cover its whole life, including the handshake and the close.
        // Its processor time is therefore scaled to the duration of the transfer.
        let cpu = total(names::CPU_MICROS).zip(total(names::THREAD_MICROS));
        let cpu = cpu.filter(|&(_, time)| time > 0).zip(seconds);
        let cpu = cpu.map(|((cpu, time), seconds)| as_f64(cpu) / as_f64(time) * seconds * 1e9);
        EndEvidence {
            seconds,
            thread: ThreadEvidence { cpu_nanos: cpu.map(to_u64), ..ThreadEvidence::default() },
            connection: ConnectionEvidence {
                // The next three counts are sums, because a mean would round rare retransmissions
                // to zero.
                data_segments_sent: total(names::DATA_SEGMENTS_SENT)
                    // Older saved sweeps do not contain the number of data segments that linerate
                    // sent. They have only the number of all segments, including pure ACKs.
                    .or_else(|| total("segments_sent")),
                retransmitted_segments: total(names::RETRANSMITTED_SEGMENTS),
                retransmission_timeouts: total(names::RETRANSMISSION_TIMEOUTS),
                receive_window_limited_micros: each(names::RECEIVE_WINDOW_LIMITED_MICROS),
                send_buffer_limited_micros: each(names::SEND_BUFFER_LIMITED_MICROS),
                ..ConnectionEvidence::default()
            },
            ..EndEvidence::default()
        }
    };
    RunEvidence {
        change: None,
        bytes_per_second: cell.median(),
        sender: end(|counters| &counters.sender),
        receiver: end(|counters| &counters.receiver),
        link_bits_per_second: link,
        wire_bits_per_second: mean(runs.iter().map(|run| Some(run.wire_bits_per_second))),
    }
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / as_f64(values.len() as u64))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds of a run")]
const fn to_u64(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use linerate_evidence::sample_data::{noise, records, square_design, start};

    /// Returns the limits of all cells of a made-up sweep with buffers of 1 to 8 packets. `rate`
    /// returns the rate of a cell in bytes per second, from its send and receive buffer in packets.
    fn limits(rate: impl Fn(f64, f64) -> f64) -> Vec<CellLimit> {
        limits_beside_contended(rate, 8.0)
    }

    /// Returns the limits of all cells of a made-up sweep with buffers of 1 to 8 packets. Cells
    /// with a buffer of more than `most` packets are contended. `rate` returns the rate of a cell
    /// in bytes per second, from its send and receive buffer in packets.
    fn limits_beside_contended(rate: impl Fn(f64, f64) -> f64, most: f64) -> Vec<CellLimit> {
        let design = square_design(8);
        let packets = |size: BufferSize| f64::from(size.packets().unwrap());
        let mut runs = records(&design, |cell, repeat| {
            rate(packets(cell.send), packets(cell.receive)) * noise(cell, repeat, 0.01)
        });
        for run in &mut runs {
            let Cell { send, receive } = run.cell();
            if packets(send).max(packets(receive)) > most {
                run.counters.sender.set(names::THREAD_MICROS, 1_000);
                run.counters.sender.set(names::CPU_WAIT_MICROS, 900);
            }
        }
        let (start, table) = (start(), Table::new(&design, &runs));
        cell_limits(&Sweep { design: &design, start: &start, runs: &runs, table: &table })
    }

    fn at(limits: &[CellLimit], send: u32, receive: u32) -> &CellLimit {
        let is_it = |limit: &&CellLimit| {
            (limit.cell.send.packets(), limit.cell.receive.packets()) == (Some(send), Some(receive))
        };
        limits.iter().find(is_it).unwrap()
    }

    #[test]
    fn the_smaller_buffer_is_the_limit_up_to_the_plateau() {
        let limits = limits(|send, receive| 1e6 * send.min(receive).min(5.0));
        assert_eq!(at(&limits, 1, 4).limits, [Limit::SendBuffer]);
        assert_eq!(at(&limits, 4, 1).limits, [Limit::ReceiveBuffer]);
        assert_eq!(at(&limits, 2, 2).limits, [Limit::SendBuffer, Limit::ReceiveBuffer]);
        for (send, receive) in [(5, 5), (6, 8), (8, 8)] {
            let flat = at(&limits, send, receive);
            assert!(flat.is_flat && flat.limits.is_empty(), "{flat:?}");
        }
        assert!(!at(&limits, 1, 1).is_flat);
    }

    #[test]
    fn an_unlimited_rise_names_the_buffer_even_at_the_largest_size() {
        let limits = limits(|_, receive| 1e6 * receive);
        for receive in [1, 4, 8] {
            assert_eq!(at(&limits, 8, receive).limits, [Limit::ReceiveBuffer], "{receive}");
        }
        assert!(!at(&limits, 8, 8).is_flat);
    }

    #[test]
    fn contended_cells_do_not_show_whether_a_cell_is_flat() {
        let beside_contended = |contended_rate: f64, rate: fn(f64, f64) -> f64| {
            let rate = move |send: f64, receive: f64| {
                if send.max(receive) > 4.0 { contended_rate } else { rate(send, receive) }
            };
            limits_beside_contended(rate, 4.0)
        };
        let rising = beside_contended(1e5, |send, receive| 1e6 * send.min(receive));
        assert!(!at(&rising, 4, 4).is_flat, "slow contended cells");
        let flat = beside_contended(2e6, |_, _| 1e6);
        assert!(at(&flat, 1, 1).is_flat && at(&flat, 4, 4).is_flat, "fast contended cells");
    }

    #[test]
    fn a_flat_surface_names_no_buffer() {
        let limits = limits(|_, _| 1e6);
        assert!(limits.iter().all(|limit| limit.is_flat && limit.limits.is_empty()));
    }
}
