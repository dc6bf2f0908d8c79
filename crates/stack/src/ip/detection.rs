//! Detection of duplicate addresses: the probes and announcements of each address, and their times
//! (RFC 4862 §5.4 for IPv6, RFC 5227 §2 for IPv4).

use crate::keys::Draws;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};

/// The limit of the random delay before the first probe: MAX_RTR_SOLICITATION_DELAY of RFC 4861
/// §10, PROBE_WAIT of RFC 5227 §1.1.
const DELAY: Duration = Duration::from_secs(1);
/// PROBE_NUM of RFC 5227 §1.1.
const ARP_PROBES: u8 = 3;
/// PROBE_MIN, and the random rest up to PROBE_MAX.
const ARP_PROBE_MIN: Duration = Duration::from_secs(1);
const ARP_PROBE_SPREAD: Duration = Duration::from_secs(1);
/// ANNOUNCE_WAIT.
const ARP_ANNOUNCE_WAIT: Duration = Duration::from_secs(2);
/// ANNOUNCE_NUM and ANNOUNCE_INTERVAL.
const ARP_ANNOUNCEMENTS: u8 = 2;
const ARP_ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);

/// A step of the detection of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetectionStep {
    /// Send a probe for the address.
    Probe(IpAddr),
    /// No other host has the address: it can be used.
    Unique(IpAddr),
    /// Send an announcement of the IPv4 address.
    Announce(IpAddr),
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The random delay is not drawn yet, because the host does not know the time.
    New,
    /// The address is being probed; this number of probes were sent.
    Probing(u8),
    /// The address is in use and being announced; this number of announcements were sent.
    Announcing(u8),
}

#[derive(Clone, Copy, Debug)]
struct Detection {
    address: IpAddr,
    phase: Phase,
    /// The time of the next step.
    at: Instant,
}

/// The detections in progress, at most one for each address.
#[derive(Debug)]
pub(crate) struct Detections {
    entries: Vec<Detection>,
    /// Probes for an IPv6 address; zero if duplicates are not detected.
    transmits: u8,
    /// The time between two probes for an IPv6 address.
    interval: Duration,
    draws: Draws,
}

impl Detections {
    pub(crate) const fn new(transmits: u8, draws: Draws) -> Self {
        let interval = Duration::from_secs(1);
        Self { entries: Vec::new(), transmits, interval, draws }
    }

    /// Are duplicates detected at all?
    pub(crate) const fn is_enabled(&self) -> bool {
        self.transmits > 0
    }

    /// Returns the number of probes for an IPv6 address.
    pub(crate) const fn transmits(&self) -> u8 {
        self.transmits
    }

    /// Returns the time between two probes for an IPv6 address.
    pub(crate) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Disables detection, on a link without other hosts.
    pub(crate) fn disable(&mut self) {
        self.transmits = 0;
        self.entries.clear();
    }

    /// Sets the time between two probes, as a router has advertised it (RFC 4862 §5.1).
    pub(crate) const fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// Begins the detection of an address at the next timeout.
    pub(crate) fn begin(&mut self, address: IpAddr) {
        self.begin_at(address, Instant::ZERO);
    }

    /// Begins the detection of an address at a time.
    pub(crate) fn begin_at(&mut self, address: IpAddr, at: Instant) {
        self.end(address);
        self.entries.push(Detection { address, phase: Phase::New, at });
    }

    /// Ends the detection of an address, and its announcements.
    pub(crate) fn end(&mut self, address: IpAddr) {
        self.entries.retain(|entry| entry.address != address);
    }

    /// Returns the time of the next step.
    pub(crate) fn next(&self) -> Instant {
        self.entries.iter().map(|entry| entry.at).min().unwrap_or(Instant::NEVER)
    }

    /// Performs the next step that is due at `now`.
    pub(crate) fn step(&mut self, now: Instant) -> Option<DetectionStep> {
        loop {
            let place = self.entries.iter().position(|entry| entry.at <= now)?;
            let entry = &mut self.entries[place];
            let address = entry.address;
            let probes = if address.is_ipv4() { ARP_PROBES } else { self.transmits };
            match entry.phase {
                Phase::New => {
                    (entry.phase, entry.at) = (Phase::Probing(0), now + self.draws.below(DELAY));
                }
                Phase::Probing(sent) if sent < probes => {
                    let gap = match address {
                        IpAddr::V6(_) => self.interval,
                        IpAddr::V4(_) if sent + 1 == ARP_PROBES => ARP_ANNOUNCE_WAIT,
                        IpAddr::V4(_) => ARP_PROBE_MIN + self.draws.below(ARP_PROBE_SPREAD),
                    };
                    (entry.phase, entry.at) = (Phase::Probing(sent + 1), now + gap);
                    return Some(DetectionStep::Probe(address));
                }
                Phase::Probing(_) => {
                    (entry.phase, entry.at) = (Phase::Announcing(0), now);
                    if address.is_ipv6() {
                        self.entries.remove(place);
                    }
                    return Some(DetectionStep::Unique(address));
                }
                Phase::Announcing(sent) => {
                    let sent = sent + 1;
                    (entry.phase, entry.at) =
                        (Phase::Announcing(sent), now + ARP_ANNOUNCE_INTERVAL);
                    if sent == ARP_ANNOUNCEMENTS {
                        self.entries.remove(place);
                    }
                    return Some(DetectionStep::Announce(address));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    fn detections(transmits: u8, seed: u8) -> Detections {
        Detections::new(transmits, Draws::new(&Keys::new([seed; 32]), "detection"))
    }

    /// Returns the steps from `now` on with their times in milliseconds.
    fn steps(detections: &mut Detections, mut now: Instant) -> Vec<(u64, DetectionStep)> {
        let mut steps = Vec::new();
        while detections.next() != Instant::NEVER {
            now = now.max(detections.next());
            steps.extend(detections.step(now).map(|step| (now.as_millis(), step)));
        }
        steps
    }

    #[test]
    fn an_ipv6_address_is_unique_one_interval_after_the_last_probe() {
        let address = "fe80::1".parse().unwrap();
        let mut first = Vec::new();
        for seed in 0..20 {
            let mut detections = detections(2, seed);
            detections.begin(address);
            let [(one, a), (two, b), (end, c)] =
                steps(&mut detections, Instant::ZERO).try_into().unwrap();
            assert_eq!((a, b), (DetectionStep::Probe(address), DetectionStep::Probe(address)));
            assert_eq!((c, two - one, end - two), (DetectionStep::Unique(address), 1_000, 1_000));
            first.push(one);
        }
        assert!(first.iter().all(|&delay| delay <= 1_000), "{first:?}");
        first.sort_unstable();
        assert!(first[15] > first[4] + 200, "delays are random: {first:?}");
    }

    #[test]
    fn an_ipv4_address_is_probed_three_times_and_announced_twice() {
        let address = "192.0.2.1".parse().unwrap();
        let mut detections = detections(1, 1);
        detections.begin(address);
        let steps = steps(&mut detections, Instant::ZERO);
        let kinds: Vec<_> = steps.iter().map(|&(_, step)| step).collect();
        let (probe, announce) = (DetectionStep::Probe(address), DetectionStep::Announce(address));
        let unique = DetectionStep::Unique(address);
        assert_eq!(kinds, [probe, probe, probe, unique, announce, announce]);
        let gaps: Vec<_> = steps.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!((1_000..=2_000).contains(&gaps[0]) && (1_000..=2_000).contains(&gaps[1]));
        assert_eq!(gaps[2..], [2_000, 0, 2_000]);
    }

    #[test]
    fn an_ended_detection_has_no_steps() {
        let address = "fe80::1".parse().unwrap();
        let mut detections = detections(1, 1);
        detections.begin(address);
        detections.end(address);
        assert_eq!((detections.next(), detections.step(Instant::ZERO)), (Instant::NEVER, None));
    }
}
