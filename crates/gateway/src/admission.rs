//! The decision about the first packet of a flow, which must be cheap: a flood has no others.

use linerate_stack::{Opening, Rejection, Verdict};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Limit of new flows that wait to be begun. More come only in a flood, and are dropped before
/// they cost anything. An honest client repeats its packet.
const WAITING: usize = 512;

/// The state that the gateway shares with the hook of its forwarders. Both run on one thread.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// Are new flows rejected, because the gateway finishes?
    is_draining: AtomicBool,
    /// New flows that may still be added until the next turn.
    room: AtomicUsize,
    dropped: AtomicU64,
}

impl Admission {
    /// Starts a turn, before which so many new flows wait.
    pub(crate) fn begin_turn(&self, waiting: usize) {
        self.room.store(WAITING.saturating_sub(waiting), Ordering::Relaxed);
    }

    /// Decides about a new flow.
    pub(crate) fn decide(&self, _: &Opening) -> Verdict {
        if self.is_draining() {
            return Verdict::Reject(Rejection::Reset);
        }
        let room = self.room.load(Ordering::Relaxed);
        if room == 0 {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return Verdict::Drop;
        }
        self.room.store(room - 1, Ordering::Relaxed);
        Verdict::Defer
    }

    /// Rejects new flows from now on.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Returns the number of new flows that were dropped because too many waited.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_stack::Transport;
    use linerate_wire::TcpOptions;

    #[test]
    fn new_flows_beyond_the_limit_are_dropped_until_others_have_begun() {
        let address = "192.0.2.1:80".parse().unwrap();
        let opening = Opening {
            transport: Transport::Tcp,
            source: address,
            destination: address,
            options: TcpOptions::default(),
        };
        let admission = Admission::default();
        admission.begin_turn(0);
        let deferred =
            (0..2 * WAITING).filter(|_| admission.decide(&opening) == Verdict::Defer).count();
        assert_eq!((deferred, admission.dropped()), (WAITING, WAITING as u64));
        admission.begin_turn(WAITING);
        assert_eq!(admission.decide(&opening), Verdict::Drop);
        admission.begin_turn(WAITING - 1);
        assert_eq!(admission.decide(&opening), Verdict::Defer);
        admission.drain();
        assert_eq!(admission.decide(&opening), Verdict::Reject(Rejection::Reset));
    }
}
