//! The ring of senders: a round-robin schedule of the senders with frames to send. Each sender is
//! in the ring at most once.
//!
//! The sender at the front may send only a few frames before it moves to the back, so that no
//! sender starves. The host itself is a single sender for all of its own replies (ARP, ICMP,
//! resets). A flood of requests therefore takes no more of the link than one socket.

use crate::collections::list::{Links, List};
use core::hint::cold_path;

/// Maximum number of frames that a sender may send before it moves to the back of the ring. It is
/// more than one, so that the later frames find the sender's state in the processor's caches. In
/// addition, the receiving host finds the connection of the later frames in its flow cache, without
/// a lookup.
const FRAMES_PER_TURN: u32 = 4;

/// A sender in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The host itself. Its reply queue contains packets that belong to no socket, such as ICMP
    /// replies and resets.
    Replies,
    /// The socket with this index.
    Socket(u32),
}

impl Sender {
    const fn item(self) -> u32 {
        match self {
            Self::Replies => 0,
            Self::Socket(index) => index + 1,
        }
    }

    pub(crate) const fn of(item: u32) -> Self {
        match item.checked_sub(1) {
            None => Self::Replies,
            Some(index) => Self::Socket(index),
        }
    }
}

/// The ring of senders with frames to send.
#[derive(Debug)]
pub(crate) struct Ready {
    links: Links,
    ring: List,
    /// Number of frames that the sender at the front has sent since it came to the front.
    sent: u32,
}

impl Ready {
    /// Creates an empty ring.
    pub(crate) const fn new() -> Self {
        Self { links: Links::new(), ring: List::EMPTY, sent: 0 }
    }

    /// Adds a sender at the back, unless the sender is already in the ring.
    #[inline]
    pub(crate) fn push(&mut self, sender: Sender) {
        if !self.contains(sender) {
            self.links.push_back(&mut self.ring, sender.item());
        }
    }

    /// Frees the links of sockets with an index of `sockets` or more. These sockets no longer
    /// exist.
    #[cold]
    pub(crate) fn shrink(&mut self, sockets: u32) {
        self.links.shrink(Sender::Socket(sockets).item() as usize);
    }

    /// Returns the sender at the front, which sends the next frame, and counts this frame. A sender
    /// that has already sent its maximum number of frames is moved to the back first.
    #[inline]
    pub(crate) fn turn(&mut self) -> Option<Sender> {
        if self.sent >= FRAMES_PER_TURN {
            cold_path();
            self.end_turn();
        }
        let item = self.ring.first()?;
        self.sent += 1;
        Some(Sender::of(item))
    }

    #[inline(never)]
    fn end_turn(&mut self) {
        self.sent = 0;
        if let Some(item) = self.links.pop_front(&mut self.ring) {
            self.links.push_back(&mut self.ring, item);
        }
    }

    /// Returns how many more frames `sender` may send before it moves to the back of the ring. This
    /// is zero if the sender is not at the front. It is unlimited (`u32::MAX`) if the sender is
    /// alone in the ring.
    pub(crate) fn left_to(&self, sender: Sender) -> u32 {
        if !self.ring.begins_with(sender.item()) {
            return 0;
        }
        if self.ring.len() == 1 { u32::MAX } else { FRAMES_PER_TURN.saturating_sub(self.sent) }
    }

    /// Counts `frames` more frames as sent by the sender at the front.
    pub(crate) const fn count(&mut self, frames: u32) {
        self.sent = self.sent.saturating_add(frames);
    }

    /// Removes a sender that has no more frames to send.
    #[inline]
    pub(crate) fn remove(&mut self, sender: Sender) {
        if self.ring.begins_with(sender.item()) {
            self.sent = 0;
            self.links.remove(&mut self.ring, sender.item());
        } else {
            self.remove_behind_front(sender);
        }
    }

    /// Removes a sender that is not at the front of the ring, if the ring contains it.
    #[cold]
    fn remove_behind_front(&mut self, sender: Sender) {
        if self.contains(sender) {
            self.links.remove(&mut self.ring, sender.item());
        }
    }

    /// Is the sender in the ring?
    #[inline]
    pub(crate) fn contains(&self, sender: Sender) -> bool {
        self.links.contains(sender.item())
    }

    /// Is the ring empty?
    pub(crate) const fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns all senders in the ring.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sender> + '_ {
        self.links.iter(&self.ring).map(Sender::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn ring(sockets: u32) -> Ready {
        let mut ready = Ready::new();
        ready.push(Sender::Replies);
        (0..sockets).for_each(|index| ready.push(Sender::Socket(index)));
        ready
    }

    #[test]
    fn senders_take_equal_turns() {
        let mut ready = ring(3);
        let turns: Vec<_> = (0..16 * 5).filter_map(|_| ready.turn()).collect();
        for sender in [Sender::Replies, Sender::Socket(0), Sender::Socket(1), Sender::Socket(2)] {
            assert_eq!(turns.iter().filter(|&&turn| turn == sender).count(), 20);
        }
    }

    #[test]
    fn a_removed_sender_does_not_shorten_the_next_turn() {
        let mut ready = ring(2);
        assert_eq!(ready.turn(), Some(Sender::Replies));
        ready.remove(Sender::Replies);
        let turns: Vec<_> = (0..5).filter_map(|_| ready.turn()).collect();
        assert_eq!(turns[..4], [Sender::Socket(0); 4]);
        assert_eq!(turns[4], Sender::Socket(1));
    }

    #[test]
    fn a_burst_is_limited_to_a_turn_unless_alone() {
        let mut ready = ring(1);
        assert_eq!(ready.turn(), Some(Sender::Replies));
        assert_eq!(
            (ready.left_to(Sender::Replies), ready.left_to(Sender::Socket(0))),
            (FRAMES_PER_TURN - 1, 0)
        );
        ready.count(FRAMES_PER_TURN - 1);
        assert_eq!(ready.left_to(Sender::Replies), 0);
        ready.remove(Sender::Socket(0));
        assert_eq!(ready.left_to(Sender::Replies), u32::MAX, "it is the only sender");
        ready.push(Sender::Socket(0));
        assert_eq!(ready.left_to(Sender::Replies), 0);
        assert_eq!(ready.turn(), Some(Sender::Socket(0)));
    }

    #[test]
    fn a_sender_is_in_the_ring_at_most_once() {
        let mut ready = ring(1);
        ready.push(Sender::Socket(0));
        assert_eq!(ready.iter().count(), 2);
        ready.remove(Sender::Socket(0));
        ready.remove(Sender::Socket(0));
        ready.remove(Sender::Replies);
        assert_eq!(ready.turn(), None);
        assert!(ready.is_empty());
    }
}
