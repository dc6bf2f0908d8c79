//! Duplicate address detection: the times at which the host probes and announces each address (RFC
//! 4862 §5.4 for IPv6, RFC 5227 §2 for IPv4).

use crate::keys::Draws;
use alloc::vec::Vec;
use core::net::IpAddr;
use linerate_units::{Duration, Instant};

/// Maximum of the random delay before the first probe: MAX_RTR_SOLICITATION_DELAY of RFC 4861 §10,
/// PROBE_WAIT of RFC 5227 §1.1.
const DELAY: Duration = Duration::from_secs(1);
/// Number of ARP probes for an address: PROBE_NUM of RFC 5227 §1.1.
const ARP_PROBES: u8 = 3;
/// Minimum time between two ARP probes (PROBE_MIN), and the maximum random time that is added to it
/// (PROBE_MAX - PROBE_MIN of RFC 5227 §1.1).
const ARP_PROBE_MIN: Duration = Duration::from_secs(1);
const ARP_PROBE_SPREAD: Duration = Duration::from_secs(1);
/// Time between the final ARP probe and the first announcement: ANNOUNCE_WAIT of RFC 5227 §1.1.
const ARP_ANNOUNCE_WAIT: Duration = Duration::from_secs(2);
/// Number of announcements, and the time between two announcements: ANNOUNCE_NUM and
/// ANNOUNCE_INTERVAL of RFC 5227 §1.1.
const ARP_ANNOUNCEMENTS: u8 = 2;
const ARP_ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);

/// A step of duplicate address detection, which the caller must perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetectionStep {
    /// Send a probe for the address.
    Probe(IpAddr),
    /// Begin to use the address, because no other host has it.
    Unique(IpAddr),
    /// Send an announcement of the IPv4 address.
    Announce(IpAddr),
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Detection has not begun. The caller of `begin` does not pass the current time. So the random
    /// delay before the first probe is drawn when the next step is taken, and counts from then on.
    New,
    /// The address is being probed. Contains the number of sent probes.
    Probing(u8),
    /// The address is in use and is being announced. Contains the number of sent announcements.
    Announcing(u8),
}

#[derive(Clone, Copy, Debug)]
struct Detection {
    address: IpAddr,
    phase: Phase,
    /// The time of the next step.
    at: Instant,
}

/// The detections in progress, at most one for each address of an interface.
#[derive(Debug)]
pub(crate) struct Detections {
    entries: Vec<Detection>,
    /// Number of probes for an IPv6 address. Zero disables duplicate address detection for both IP
    /// versions.
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

    /// Is duplicate address detection enabled?
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

    /// Sets the time between two probes for an IPv6 address to the value that a router has
    /// advertised (RFC 4862 §5.1).
    pub(crate) const fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// Begins the detection of an address as soon as the next step is taken.
    pub(crate) fn begin(&mut self, address: IpAddr) {
        self.begin_at(address, Instant::ZERO);
    }

    /// Begins the detection of an address at the time `at`.
    pub(crate) fn begin_at(&mut self, address: IpAddr, at: Instant) {
        self.end(address);
        self.entries.push(Detection { address, phase: Phase::New, at });
    }

    /// Ends duplicate address detection for an address, and discards the announcements that are
    /// still due.
    pub(crate) fn end(&mut self, address: IpAddr) {
        self.entries.retain(|entry| entry.address != address);
    }

    /// Returns the time of the next step; [`Instant::NEVER`] if no detection is in progress.
    pub(crate) fn next(&self) -> Instant {
        self.entries.iter().map(|entry| entry.at).min().unwrap_or(Instant::NEVER)
    }

    /// Returns the next step that is due at `now`, or `None` if no step is due.
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

    /// Runs all detections from `now` on. Returns the steps, each with its time in milliseconds.
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
