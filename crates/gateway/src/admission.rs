//! The decision whether a new flow is handled, made for the flow's first packet. It must be cheap,
//! because each packet of a flood can be the first packet of a new flow.

use linerate_stack::{Opening, Rejection, Verdict};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Maximum number of new flows that wait to be handled. Only a flood exceeds it. At the maximum,
/// the first packet of each additional flow is dropped. Legitimate clients send that packet again.
const WAITING: usize = 512;

/// The state that the gateway shares with the hook of its forwarders. Both run on one thread; the
/// fields are atomic only because the hook must be `Send`.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    /// Are new flows rejected, because the gateway is stopping?
    is_draining: AtomicBool,
    /// Number of new flows that can still be queued before the next turn.
    room: AtomicUsize,
    dropped: AtomicU64,
}

impl Admission {
    /// Sets the number of new flows that this turn may queue. `waiting` is the number of new flows
    /// that earlier turns have queued and that are not yet handled.
    pub(crate) fn begin_turn(&self, waiting: usize) {
        self.room.store(WAITING.saturating_sub(waiting), Ordering::Relaxed);
    }

    /// Decides whether a new flow is handled, rejected or dropped.
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

    /// Makes all later decisions reject the new flow, because the gateway is stopping.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Returns the number of new flows that were dropped because too many were waiting.
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
