//! The half of a card that sends: a ring of commands, worked off one after the other; of several queues each has one,
//! and they take turns, a frame each.

use super::fifo::Fifo;
use super::parameters::TransmitParameters;
use super::receive::Receiver;
use super::{NicAction, NicEvent};
use crate::frame::FrameId;
use linerate_units::{Span, Tick};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Transmitter {
    parameters: TransmitParameters,
    /// The FIFO, if it can run empty.
    fifo: Option<Fifo>,
    /// By queue.
    rings: Vec<Ring>,
    /// The queue whose turn it is.
    turn: u16,
    /// Is the command at the head of its ring worked on?
    works: bool,
    /// Bytes of its frame that leave before the FIFO runs empty, if it does.
    cut: Option<usize>,
    /// How often it was broken off so.
    broken_off: u64,
}

/// The commands of a queue.
#[derive(Debug)]
struct Ring {
    /// Frames that have not left, the one that is worked on first.
    waiting: VecDeque<Piece>,
    /// Commands that they belong to.
    commands: usize,
    /// Commands whose frames have left, and that are not done.
    leaving: usize,
}

/// A frame that is to be sent: all that a command asks for, or a piece of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) frame: FrameId,
    pub(crate) length: usize,
    /// Its command is done when it has left.
    pub(crate) is_last: bool,
}

impl Transmitter {
    pub(super) fn new(parameters: TransmitParameters, queues: u16, fifo: Option<Fifo>) -> Self {
        let ring =
            || Ring { waiting: VecDeque::with_capacity(parameters.ring), commands: 0, leaving: 0 };
        let rings = std::iter::repeat_with(ring).take(queues.into()).collect();
        Self { parameters, fifo, rings, turn: 0, works: false, cut: None, broken_off: 0 }
    }

    pub(super) fn has_room(&self, queue: u16) -> bool {
        self.held(queue) < self.parameters.ring
    }

    /// Commands that a queue has.
    pub(super) fn held(&self, queue: u16) -> usize {
        self.rings[usize::from(queue)].held()
    }

    /// The queue whose frame leaves.
    pub(super) const fn turn(&self) -> u16 {
        self.turn
    }

    pub(super) fn queue(
        &mut self,
        now: Tick,
        queue: u16,
        piece: Piece,
        actions: &mut Vec<NicAction>,
    ) {
        assert!(self.has_room(queue), "the driver gives no command that there is no room for");
        let ring = &mut self.rings[usize::from(queue)];
        ring.commands += usize::from(piece.is_last);
        ring.waiting.push_back(piece);
        if !self.works {
            (self.works, self.turn) = (true, queue);
            actions
                .push(NicAction::Later { at: now + self.parameters.start, event: NicEvent::Ready });
        }
    }

    /// The head is ready to leave, unless the card has to turn round after receiving.
    pub(super) fn handle_ready(
        &mut self,
        now: Tick,
        receiver: &Receiver,
        actions: &mut Vec<NicAction>,
    ) {
        let turned = receiver.ended() + self.parameters.after_receive;
        if receiver.ended() > Tick::ZERO && turned > now {
            actions.push(NicAction::Later { at: turned, event: NicEvent::Ready });
        } else if let Some(&Piece { frame, .. }) =
            self.rings[usize::from(self.turn)].waiting.front()
        {
            actions.push(NicAction::Request { frame });
        }
    }

    /// It begins to leave, each time anew after it has met another: will the bus bring all of its bytes in time?
    pub(super) fn handle_sending(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        let Some(fifo) = self.fifo else { return };
        let Some(&Piece { frame, length, .. }) = self.rings[usize::from(self.turn)].waiting.front()
        else {
            return;
        };
        let left = fifo.runs_empty(now + fifo.preamble(), length as u64);
        let cut = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        if cut != self.cut {
            self.cut = cut;
            actions.push(NicAction::Cut { frame, cut });
        }
    }

    /// A frame has been received: what is about to leave must be fetched again, if both halves share a FIFO.
    pub(super) fn handle_received(&self, now: Tick, actions: &mut Vec<NicAction>) {
        if self.works && self.parameters.after_receive > Span::ZERO {
            actions.push(NicAction::Hold { until: now + self.parameters.after_receive });
        }
    }

    /// Does the frame that leaves end before its end?
    pub(super) const fn is_broken_off(&self) -> bool {
        self.cut.is_some()
    }

    pub(super) fn handle_sent(
        &mut self,
        now: Tick,
        broken_off: bool,
        actions: &mut Vec<NicAction>,
    ) {
        self.cut = None;
        if broken_off && self.broken_off < self.parameters.retries {
            self.broken_off += 1;
            let at = now + self.parameters.restart;
            return actions.push(NicAction::Later { at, event: NicEvent::Ready });
        }
        self.broken_off = 0;
        let ring = &mut self.rings[usize::from(self.turn)];
        let Some(Piece { frame, is_last, .. }) = ring.waiting.pop_front() else { return };
        actions.push(NicAction::Release { frame });
        if is_last {
            (ring.commands, ring.leaving) = (ring.commands - 1, ring.leaving + 1);
            let event = NicEvent::CommandDone { queue: self.turn };
            actions.push(NicAction::Later { at: now + self.parameters.done, event });
        }
        self.take_turn();
        if self.works {
            let until_next =
                if broken_off { self.parameters.restart } else { self.parameters.chained };
            actions.push(NicAction::Later { at: now + until_next, event: NicEvent::Ready });
        }
    }

    /// It is the next queue's turn that has anything to send.
    fn take_turn(&mut self) {
        let waiting = || (0..).zip(&self.rings).filter(|(_, ring)| !ring.waiting.is_empty());
        let next = waiting().find(|&(queue, _)| queue > self.turn).or_else(|| waiting().next());
        self.works = next.is_some();
        self.turn = next.map_or(self.turn, |(queue, _)| queue);
    }

    pub(super) fn handle_done(&mut self, queue: u16) {
        self.rings[usize::from(queue)].leaving -= 1;
    }

    pub(super) fn check(&self) {
        for ring in &self.rings {
            assert!(ring.held() <= self.parameters.ring, "the ring holds what it holds");
            let commands = ring.waiting.iter().filter(|piece| piece.is_last).count();
            assert_eq!(commands, ring.commands, "a command ends with one of its frames");
        }
        let is_there = !self.rings[usize::from(self.turn)].waiting.is_empty();
        assert!(!self.works || is_there, "nobody works on a command that is not there");
        let is_idle = self.rings.iter().all(|ring| ring.waiting.is_empty());
        assert!(self.works || is_idle, "nobody waits while nothing is worked on");
    }
}

impl Ring {
    const fn held(&self) -> usize {
        self.commands + self.leaving
    }
}

#[cfg(test)]
mod tests {
    use super::super::arbiter::{Arbiter, BusParameters};
    use super::super::parameters::{DmaParameters, ReceiveParameters};
    use super::*;
    use crate::frame::Frames;

    #[test]
    fn a_fifo_is_judged_when_its_frame_begins_to_leave_and_each_time_that_it_does() {
        // A word takes 2 us on the bus, and 1.6 on the wire.
        let dma = DmaParameters { word: 2, cycle: Span::from_picos(2_000_000), burst: 8 };
        let arbiter = Arbiter::new(BusParameters::default(), 1, 0);
        let fifo = Fifo::new(48, &dma, Span::from_picos(800_000), arbiter);
        let (zero, retries) = (Span::ZERO, 0);
        let [start, chained, done, after_receive, restart] = [zero; 5];
        let parameters = TransmitParameters {
            ring: 2,
            start,
            chained,
            done,
            after_receive,
            fifo: Some(48),
            retries,
            restart,
        };
        let receive = ReceiveParameters { ring: 1, page: 0, done, deaf: zero, restart, fifo: None };
        let receiver = Receiver::new(receive, 1);
        let (mut transmitter, mut actions) = (Transmitter::new(parameters, 1, fifo), Vec::new());
        let [frame, short] = [(); 2].map({
            let mut frames = Frames::new(1_514);
            move |()| frames.take()
        });
        let now = Tick::ZERO;
        transmitter.queue(now, 0, Piece { frame, length: 1_514, is_last: true }, &mut actions);
        transmitter.queue(now, 0, Piece { frame: short, length: 60, is_last: true }, &mut actions);
        actions.clear();
        transmitter.handle_ready(now, &receiver, &mut actions);
        assert_eq!(
            actions,
            [NicAction::Request { frame }],
            "nothing is known of the bus before it begins"
        );
        actions.clear();
        transmitter.handle_sending(now, &mut actions);
        let [NicAction::Cut { frame: which, cut: Some(cut) }] = actions[..] else {
            panic!("{actions:?}")
        };
        assert!(which == frame && (48..1_514).contains(&cut) && transmitter.is_broken_off());
        actions.clear();
        transmitter.handle_sending(now, &mut actions);
        assert_eq!(actions, [], "what has been said is not said again");
        transmitter.handle_sent(now, true, &mut actions);
        actions.clear();
        transmitter.handle_sending(now, &mut actions);
        assert!(
            actions.is_empty() && !transmitter.is_broken_off(),
            "60 bytes are over before it can run empty"
        );
        transmitter.check();
    }
}
