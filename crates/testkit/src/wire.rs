//! Packets in flight between two endpoints, in virtual time.

use crate::{Fate, Narrow, Network};
use linerate_units::{Bytes, Duration, Instant};
use linerate_wire::Ecn;
use oorandom::Rand64;
use std::collections::BTreeMap;

/// A packet, with the time and the place of its arrival.
#[derive(Debug)]
pub struct Arrival<To> {
    /// Time at which the packet arrives.
    pub at: Instant,
    /// The endpoint that receives the packet.
    pub to: To,
    /// Bytes of the packet as it arrives.
    pub bytes: Vec<u8>,
    /// ECN codepoint on arrival. The receiving endpoint writes it into the packet's header.
    pub ecn: Ecn,
}

/// The packets in flight to endpoints of the type `To`.
#[derive(Debug)]
pub struct Wire<To> {
    /// Properties of the path. If a test changes them, the change affects only packets that are
    /// sent afterwards.
    pub network: Network,
    random: Rand64,
    /// The packets in order of arrival. The second part of the key is the number of the packet in
    /// the order of sending. It distinguishes packets that arrive at the same time.
    in_flight: BTreeMap<(Instant, u64), Arrival<To>>,
    /// For each endpoint that receives packets, the time until which the bottleneck towards this
    /// endpoint is busy.
    busy: BTreeMap<To, Instant>,
    sent: u64,
    /// Number of packets that were sent in both directions, without those whose fate was
    /// [`Fate::Lose`].
    offered: u64,
}

impl<To: Copy + Ord> Wire<To> {
    /// Creates a wire without packets. `seed` determines the random faults of the path.
    #[must_use]
    pub fn new(network: Network, seed: u64) -> Self {
        let random = Rand64::new(u128::from(seed));
        Self {
            network,
            random,
            in_flight: BTreeMap::new(),
            busy: BTreeMap::new(),
            sent: 0,
            offered: 0,
        }
    }

    /// Sends a packet with the ECN codepoint `ecn` towards `to`. Its fate is random unless `fate`
    /// is given.
    pub fn send(&mut self, now: Instant, to: To, mut bytes: Vec<u8>, ecn: Ecn, fate: Option<Fate>) {
        // A random fate is drawn even if `fate` is given, so that the fates of later packets are
        // the same in both cases.
        let drawn = self.network.draw(&mut self.random);
        let fate = fate.unwrap_or(drawn);
        if fate == Fate::Lose || self.swallows(bytes.len()) {
            return;
        }
        let Some(leaves) = self.pass_line(now, to, bytes.len()) else { return };
        let arrives = leaves + self.network.latency;
        let may_be_marked = ecn != Ecn::NotEct;
        let ecn = if fate == Fate::Mark { Ecn::Ce } else { ecn };
        match fate {
            Fate::Lose => {}
            Fate::Mark if !may_be_marked => {}
            Fate::Arrive | Fate::Mark => self.carry(Arrival { at: arrives, to, bytes, ecn }),
            Fate::Delay(span) => self.carry(Arrival { at: arrives + span, to, bytes, ecn }),
            Fate::Repeat(span) => {
                self.carry(Arrival { at: arrives, to, bytes: bytes.clone(), ecn });
                self.carry(Arrival { at: arrives + span, to, bytes, ecn });
            }
            Fate::Spoil(bit) => {
                let bit = bit % (bytes.len() as u64 * 8).max(1);
                if let Some(byte) = bytes.get_mut(usize::try_from(bit / 8).unwrap_or(usize::MAX)) {
                    *byte ^= 1 << (bit % 8);
                }
                self.carry(Arrival { at: arrives, to, bytes, ecn });
            }
        }
    }

    /// Counts a packet of `length` bytes. Returns whether the path drops it silently, because it
    /// exceeds the size limit of the path, and the limit applies to the packet with this number.
    fn swallows(&mut self, length: usize) -> bool {
        self.offered += 1;
        let number = self.offered;
        let leads_there = |narrow: &Narrow| (narrow.from..narrow.until).contains(&number);
        self.network.narrow.filter(leads_there).is_some_and(|narrow| length > narrow.most)
    }

    /// Returns the time at which the next packet arrives, or `NEVER` if no packet is in flight.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.in_flight.first_key_value().map_or(Instant::NEVER, |(&(at, _), _)| at)
    }

    /// Removes and returns the packet that arrives first, if its time of arrival is not later than
    /// `now`.
    pub fn arrive(&mut self, now: Instant) -> Option<Arrival<To>> {
        let first = self.in_flight.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    /// Sends a packet of `length` bytes through the bottleneck towards `to`. Returns the time at
    /// which the packet leaves it, or `None` if the queue is full and the packet is lost.
    fn pass_line(&mut self, now: Instant, to: To, length: usize) -> Option<Instant> {
        let Some(line) = self.network.line else { return Some(now) };
        let busy = self.busy.entry(to).or_insert(now);
        let free = now.max(*busy);
        if free.since(now) > line.rate.time_for(Bytes::new(line.queue)) {
            return None;
        }
        *busy = free + line.rate.time_for(Bytes::new(length as u64)).max(Duration::from_nanos(1));
        Some(*busy)
    }

    fn carry(&mut self, packet: Arrival<To>) {
        self.sent += 1;
        self.in_flight.insert((packet.at, self.sent), packet);
    }
}
