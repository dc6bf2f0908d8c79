//! Whose turn it is to send: a ring in which everyone who wants to send stands once.
//!
//! Each gets a few frames and then goes to the back, so that nobody starves, whoever else sends how
//! much. The replies of the host itself (ARP, ICMP, resets) are one of those in the ring: a flood of
//! questions gets its share of the link and no more.

use crate::collections::list::{Links, List};
use core::hint::cold_path;

/// Frames that a sender may send in one turn. A few in a row keep its memory warm, and the receiver's
/// question "the same flow as before?" answered with yes.
const FRAMES_A_TURN: u32 = 4;

/// Someone who wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The host itself.
    Replies,
    /// The socket with this number.
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

/// The ring.
#[derive(Debug)]
pub(crate) struct Ready {
    links: Links,
    ring: List,
    /// Frames that the one at the front has had in this turn.
    had: u32,
}

impl Ready {
    /// Nobody wants to send.
    pub(crate) const fn new() -> Self {
        Self { links: Links::new(), ring: List::EMPTY, had: 0 }
    }

    /// Puts a sender at the back, unless it stands in the ring already.
    #[inline]
    pub(crate) fn push(&mut self, sender: Sender) {
        if !self.contains(sender) {
            self.links.push_back(&mut self.ring, sender.item());
        }
    }

    /// Who may send a frame now. One that has had its frames goes to the back first.
    #[inline]
    pub(crate) fn turn(&mut self) -> Option<Sender> {
        if self.had >= FRAMES_A_TURN {
            cold_path();
            self.end_turn();
        }
        let item = self.ring.first()?;
        self.had += 1;
        Some(Sender::of(item))
    }

    #[inline(never)]
    fn end_turn(&mut self) {
        self.had = 0;
        if let Some(item) = self.links.pop_front(&mut self.ring) {
            self.links.push_back(&mut self.ring, item);
        }
    }

    /// How many frames more `sender` may send in this turn. Who stands alone has no end of it.
    pub(crate) fn left_to(&self, sender: Sender) -> u32 {
        if !self.ring.begins_with(sender.item()) {
            return 0;
        }
        if self.ring.len() == 1 { u32::MAX } else { FRAMES_A_TURN.saturating_sub(self.had) }
    }

    /// The one whose turn it is has sent so many frames more than it was asked for.
    pub(crate) const fn count(&mut self, frames: u32) {
        self.had = self.had.saturating_add(frames);
    }

    /// Takes out a sender that wants to send no more.
    #[inline]
    pub(crate) fn remove(&mut self, sender: Sender) {
        if self.ring.begins_with(sender.item()) {
            self.had = 0;
            self.links.remove(&mut self.ring, sender.item());
        } else {
            self.leave_out_of_turn(sender);
        }
    }

    /// Somebody whose turn it is not wants to send no more.
    #[cold]
    fn leave_out_of_turn(&mut self, sender: Sender) {
        if self.contains(sender) {
            self.links.remove(&mut self.ring, sender.item());
        }
    }

    /// Does the sender stand in the ring?
    #[inline]
    pub(crate) fn contains(&self, sender: Sender) -> bool {
        self.links.contains(sender.item())
    }

    /// Does nobody want to send?
    pub(crate) const fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Everyone in the ring.
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
    fn everyone_gets_the_same_number_of_frames() {
        let mut ready = ring(3);
        let turns: Vec<_> = (0..16 * 5).filter_map(|_| ready.turn()).collect();
        for sender in [Sender::Replies, Sender::Socket(0), Sender::Socket(1), Sender::Socket(2)] {
            assert_eq!(turns.iter().filter(|&&turn| turn == sender).count(), 20);
        }
    }

    #[test]
    fn who_leaves_early_does_not_shorten_the_turn_of_the_next() {
        let mut ready = ring(2);
        assert_eq!(ready.turn(), Some(Sender::Replies));
        ready.remove(Sender::Replies);
        let turns: Vec<_> = (0..5).filter_map(|_| ready.turn()).collect();
        assert_eq!(turns[..4], [Sender::Socket(0); 4]);
        assert_eq!(turns[4], Sender::Socket(1));
    }

    #[test]
    fn a_burst_lasts_as_long_as_a_turn_or_as_long_as_nobody_else_wants_to_send() {
        let mut ready = ring(1);
        assert_eq!(ready.turn(), Some(Sender::Replies));
        assert_eq!(
            (ready.left_to(Sender::Replies), ready.left_to(Sender::Socket(0))),
            (FRAMES_A_TURN - 1, 0)
        );
        ready.count(FRAMES_A_TURN - 1);
        assert_eq!(ready.left_to(Sender::Replies), 0);
        ready.remove(Sender::Socket(0));
        assert_eq!(ready.left_to(Sender::Replies), u32::MAX, "nobody waits for its end");
        ready.push(Sender::Socket(0));
        assert_eq!(ready.left_to(Sender::Replies), 0);
        assert_eq!(ready.turn(), Some(Sender::Socket(0)));
    }

    #[test]
    fn to_ask_twice_gives_one_place() {
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
