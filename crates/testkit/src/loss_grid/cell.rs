//! One cell of the loss grid: a path, two hosts, and the result of a transfer.

use super::{QUEUE, RATE, SEEDS};
use crate::transfer::{established, listen};
use crate::{Line, Network, Pair, Setup, Side, Transfer};
use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Duration};

/// The parameters of a transfer: a path, and the two endpoints of a connection over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Round-trip time of the path without queueing.
    pub round_trip: Duration,
    /// Probability that a packet is lost, in thousandths.
    pub loss: u32,
    /// Size of the send buffer and of the receive buffer, at both endpoints.
    pub buffer: Bytes,
    /// Congestion control of both endpoints.
    pub congestion: CongestionName,
}

/// The results of one transfer of a cell, or the median of each result over several transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Goodput in bytes per second: the bytes that the receiving application has read, divided by
    /// the duration of the transfer. The duration includes the handshake, and ends when the
    /// receiver has read the end of the stream.
    pub goodput: u64,
    /// Number of expiries of the sender's retransmission timer.
    pub timeouts: u64,
}

/// Maximum virtual time of a transfer. A transfer that takes longer fails.
const LONGEST: Duration = Duration::from_secs(7_200);

impl Cell {
    /// Returns the median of each result over several transfers, whose seeds differ. Without losses
    /// nothing is random, so a single transfer suffices.
    #[must_use]
    pub fn median(&self) -> Figures {
        let seeds = if self.loss > 0 { SEEDS } else { 1 };
        let runs: Vec<_> = (1..=seeds).map(|seed| self.run(seed)).collect();
        let median = |figure: fn(&Figures) -> u64| {
            let mut sorted: Vec<_> = runs.iter().map(figure).collect();
            sorted.sort_unstable();
            sorted[sorted.len() / 2]
        };
        Figures { goodput: median(|run| run.goodput), timeouts: median(|run| run.timeouts) }
    }

    /// Runs one transfer. `seed` determines its random losses.
    ///
    /// # Panics
    /// If the transfer does not complete, or a byte is wrong.
    #[must_use]
    pub fn run(&self, seed: u64) -> Figures {
        let network = Network {
            line: Some(Line { rate: RATE, queue: QUEUE }),
            loss: self.loss,
            ..Network::clean(self.round_trip / 2)
        };
        let setup = Setup { seed, network, ..Setup::default() };
        let mut pair = Pair::new(&setup, |_, config| {
            config.tcp.congestion = self.congestion;
            config.tcp.send_buffer = self.buffer_size().into();
            config.tcp.receive_buffer = self.buffer_size().into();
        });
        let start = pair.now;
        let listener = listen(&mut pair);
        let (left, right) = established(&mut pair, listener);
        let mut transfer = Transfer::new((Side::Left, left), (Side::Right, right), self.amount());
        let arrived = pair.run_until(LONGEST, |pair| transfer.advance(pair));
        assert!(arrived, "{self:?}, seed {seed}: {} bytes and no more", transfer.read());
        let took = pair.now.since(start);
        let per_second = u128::from(Duration::from_secs(1).as_nanos());
        let goodput = self.amount() as u128 * per_second / u128::from(took.as_nanos());
        Figures {
            goodput: u64::try_from(goodput).unwrap_or(u64::MAX),
            timeouts: pair
                .stack(Side::Left)
                .tcp(left)
                .map_or(0, |end| end.statistics().retransmission_timeouts),
        }
    }

    /// Returns the number of bytes to transfer. The transfer must last until the congestion window
    /// has reached its final size. With large buffers and without losses, this takes many bytes.
    /// With losses, the window stays small, so fewer bytes suffice. More bytes would make the
    /// transfer too slow.
    fn amount(&self) -> usize {
        let long = self.round_trip >= Duration::from_millis(100);
        match (self.loss, self.buffer.count() >= 1 << 20) {
            (0, true) if long => 32 << 20,
            (0..=1, _) => 8 << 20,
            _ => 2 << 20,
        }
    }

    fn buffer_size(&self) -> usize {
        usize::try_from(self.buffer.count()).unwrap_or(usize::MAX)
    }
}
