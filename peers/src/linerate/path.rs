//! A bulk transfer over a path with a round-trip time of 10 ms, in virtual time. Only the processor
//! time of the two hosts and their link is measured.

use super::{LEFT, PORT, RIGHT, host_with, sentence, turn};
use crate::contender::{Run, Taken};
use crate::pattern::Pattern;
use crate::stopwatch::Stopwatch;
use crate::work::{PIECE, SEGMENT, Work};
use linerate_link::memory::pair_with_clock;
use linerate_link::{Impair, ManualClock, MemoryConfig, MemoryLink};
use linerate_stack::{ConnectOptions, Error, Host, Limits, ListenHandle, ListenOptions, TcpHandle};
use linerate_tcp::Config;
use linerate_units::{Clock, Duration, Instant};

/// Latency of the path in one direction.
const ONE_WAY: Duration = Duration::from_millis(5);
/// Maximum number of frames in flight in one direction. A whole window fits, so this limit never
/// drops a frame.
const UNDER_WAY: usize = 4_096;

/// The hosts at both ends of the path. Impairments such as loss are applied by the link of the
/// right host, to the frames that this host receives.
struct Ends {
    left: Host<MemoryLink<ManualClock>>,
    right: Host<Impair<MemoryLink<ManualClock>, ManualClock>>,
    listener: ListenHandle,
    clock: ManualClock,
}

/// Transfers `run.amount` segments over a path with the impairments in `impairments`. An empty text
/// means no impairments.
///
/// # Errors
/// A message that says which step has failed.
pub fn bulk(config: Config, impairments: &str, run: Run) -> Result<Taken, String> {
    let mut ends = Ends::new(config, impairments)?;
    let (client, server) = ends.open(config)?;
    let (pattern, mut received) = (Pattern::new(), vec![0; PIECE]);
    let total = run.amount * SEGMENT;
    let (mut written, mut read) = (0, 0);
    let stopwatch = Stopwatch::start();
    while read < total {
        let now = ends.pass_time();
        turn(&mut ends.left, now)?;
        while written < total {
            let piece = pattern.at(written, total - written);
            match ends.left.stack_mut().tcp_write(now, client, piece).map_err(sentence)? {
                0 => break,
                count => written += count as u64,
            }
        }
        turn(&mut ends.left, now)?;
        let now = ends.pass_time();
        while turn(&mut ends.right, now)? > 0 {
            while let Some(count) = ends.read(now, server, &mut received)? {
                if run.verify {
                    pattern.verify(read, &received[..count])?;
                }
                read += count as u64;
            }
        }
    }
    let processor = stopwatch.elapsed();
    let frames = ends.left.stack().tcp(client).map_or([0, 0], |connection| {
        [connection.statistics().segments_sent, connection.statistics().segments_received]
    });
    Ok(Taken::new(processor, run.amount, frames))
}

impl Ends {
    fn new(config: Config, impairments: &str) -> Result<Self, String> {
        let clock = ManualClock::new(Instant::ZERO);
        let link = MemoryConfig { capacity: UNDER_WAY, ..MemoryConfig::default() };
        let (left, right) = pair_with_clock(link, clock.clone()).map_err(sentence)?;
        let right =
            Impair::with_clock(right, impairments.parse().map_err(sentence)?, 1, clock.clone());
        let left = host_with(LEFT, left, config, UNDER_WAY, Limits::default())?;
        let answer_after = Work::Path.frames_before_answer();
        let mut right = host_with(RIGHT, right, config, answer_after, Limits::default())?;
        let listener =
            right.stack_mut().tcp_listen(PORT, &ListenOptions::default()).map_err(sentence)?;
        Ok(Self { left, right, listener, clock })
    }

    /// Advances the clock by the latency of the path, and returns the new time. All frames sent
    /// before this call have arrived by then.
    fn pass_time(&self) -> Instant {
        self.clock.advance(ONE_WAY);
        self.clock.now()
    }

    fn open(&mut self, config: Config) -> Result<(TcpHandle, TcpHandle), String> {
        let options = ConnectOptions { config: Some(config), ..ConnectOptions::default() };
        let now = self.clock.now();
        let client = self.left.stack_mut().tcp_connect(now, PORT, &options).map_err(sentence)?;
        loop {
            let now = self.pass_time();
            turn(&mut self.left, now)?;
            turn(&mut self.right, now)?;
            if let Some((server, _)) = self.right.stack_mut().tcp_accept(self.listener) {
                return Ok((client, server));
            }
        }
    }

    /// Reads received data. Returns the number of bytes; `None` if no data are available.
    fn read(
        &mut self,
        now: Instant,
        server: TcpHandle,
        into: &mut [u8],
    ) -> Result<Option<usize>, String> {
        match self.right.stack_mut().tcp_read(now, server, into) {
            Ok(0) | Err(Error::WouldBlock) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(error) => Err(sentence(error)),
        }
    }
}
