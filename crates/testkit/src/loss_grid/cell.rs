//! One cell of the grid: a path, two hosts, and what a transfer comes to.

use super::{QUEUE, RATE, SEEDS};
use crate::transfer::{established, listen};
use crate::{Line, Network, Pair, Setup, Side, Transfer};
use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Duration};

/// A path and the two ends of a connection over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The round-trip time of the empty path.
    pub round_trip: Duration,
    /// Packets lost, of a thousand.
    pub loss: u32,
    /// Each of the four buffers.
    pub buffer: Bytes,
    /// What controls congestion.
    pub congestion: CongestionName,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that the application has read in a second, handshake and last byte included.
    pub goodput: u64,
    /// How often the sender's retransmission timer expired.
    pub timeouts: u64,
}

/// A transfer that takes longer than this does not come to its end.
const PATIENCE: Duration = Duration::from_secs(7_200);

impl Cell {
    /// The median of each figure over the seeds; where nothing is left to chance, one tells it all.
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

    /// One transfer; its accidents follow from `seed`.
    ///
    /// # Panics
    /// If it does not come to its end, or a byte is wrong.
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
        let arrived = pair.run_until(PATIENCE, |pair| transfer.advance(pair));
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

    /// Enough for the window to find its size: more where it becomes large, less where loss keeps it
    /// small and every segment costs time.
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
