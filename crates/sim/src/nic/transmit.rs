//! The transmit half of a NIC, with one descriptor ring for each queue. The rings take turns: each
//! sends one frame, and then the next ring with a frame follows.

use super::descriptor_ring::{TransmitFrame, TransmitRing};
use super::fifo::Fifo;
use super::parameters::TransmitParameters;
use super::receive::Receiver;
use super::{NicAction, NicEvent};
use linerate_units::{Span, Tick};

#[derive(Debug)]
pub(super) struct Transmitter {
    parameters: TransmitParameters,
    /// The transmit FIFO, or `None` if it cannot underrun.
    fifo: Option<Fifo>,
    /// The transmit ring of each queue.
    rings: Vec<TransmitRing>,
    /// The queue whose frame is being sent; if none is being sent, the queue of the most recent
    /// frame.
    current: u16,
    /// Whether the frame at the head of the current ring is being sent or made ready to be sent.
    is_active: bool,
    /// Number of bytes of the current frame that leave before the FIFO underruns; `None` if it does
    /// not underrun.
    cut: Option<usize>,
    /// Number of times that an underrun aborted the current frame.
    aborted: u64,
}

impl Transmitter {
    pub(super) fn new(parameters: TransmitParameters, queues: u16, fifo: Option<Fifo>) -> Self {
        let ring = || TransmitRing::new(parameters.ring);
        let rings = std::iter::repeat_with(ring).take(queues.into()).collect();
        Self { parameters, fifo, rings, current: 0, is_active: false, cut: None, aborted: 0 }
    }

    pub(super) fn has_room(&self, queue: u16) -> bool {
        self.held(queue) < self.parameters.ring
    }

    /// Returns the number of descriptors of a queue that are in use.
    pub(super) fn held(&self, queue: u16) -> usize {
        self.rings[usize::from(queue)].used()
    }

    /// Returns the queue whose frame is being sent.
    pub(super) const fn current_queue(&self) -> u16 {
        self.current
    }

    pub(super) fn post(
        &mut self,
        now: Tick,
        queue: u16,
        frame: TransmitFrame,
        actions: &mut Vec<NicAction>,
    ) {
        assert!(self.has_room(queue), "the driver posts only to a ring with room");
        self.rings[usize::from(queue)].push(frame);
        if !self.is_active {
            (self.is_active, self.current) = (true, queue);
            actions
                .push(NicAction::Later { at: now + self.parameters.start, event: NicEvent::Ready });
        }
    }

    /// Requests the wire for the frame at the head of the current ring. If the turnaround time
    /// after a received frame has not passed, the request is scheduled for its end.
    pub(super) fn handle_ready(
        &mut self,
        now: Tick,
        receiver: &Receiver,
        actions: &mut Vec<NicAction>,
    ) {
        let turned_round = receiver.ended() + self.parameters.after_receive;
        if receiver.ended() > Tick::ZERO && turned_round > now {
            actions.push(NicAction::Later { at: turned_round, event: NicEvent::Ready });
        } else if let Some(&TransmitFrame { frame, .. }) =
            self.rings[usize::from(self.current)].front()
        {
            actions.push(NicAction::Request { frame });
        }
    }

    /// Notes that a frame begins to leave, and computes whether the FIFO will underrun. After a
    /// collision this is computed anew for the next attempt, because the other bus master may not
    /// use the bus then.
    pub(super) fn handle_sending(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        let Some(fifo) = self.fifo else { return };
        let Some(&TransmitFrame { frame, length, .. }) =
            self.rings[usize::from(self.current)].front()
        else {
            return;
        };
        let left = fifo.underruns(now + fifo.preamble(), length as u64);
        let cut = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        if cut != self.cut {
            self.cut = cut;
            actions.push(NicAction::Truncate { frame, cut });
        }
    }

    /// Notes that a frame has been received. If sending and receiving use common hardware, the NIC
    /// cannot send for the turnaround time after that. A frame that waits for the wire is delayed
    /// accordingly.
    pub(super) fn handle_received(&self, now: Tick, actions: &mut Vec<NicAction>) {
        if self.is_active && self.parameters.after_receive > Span::ZERO {
            actions.push(NicAction::Hold { until: now + self.parameters.after_receive });
        }
    }

    /// Returns whether the frame being sent is aborted by an underrun.
    pub(super) const fn is_aborted(&self) -> bool {
        self.cut.is_some()
    }

    pub(super) fn handle_sent(&mut self, now: Tick, aborted: bool, actions: &mut Vec<NicAction>) {
        self.cut = None;
        if aborted && self.aborted < self.parameters.retries {
            self.aborted += 1;
            let at = now + self.parameters.restart;
            return actions.push(NicAction::Later { at, event: NicEvent::Ready });
        }
        self.aborted = 0;
        let ring = &mut self.rings[usize::from(self.current)];
        let Some(TransmitFrame { frame, is_last, .. }) = ring.pop() else { return };
        actions.push(NicAction::Release { frame });
        if is_last {
            let event = NicEvent::DescriptorDone { queue: self.current };
            actions.push(NicAction::Later { at: now + self.parameters.done, event });
        }
        self.select_queue();
        if self.is_active {
            let until_next =
                if aborted { self.parameters.restart } else { self.parameters.chained };
            actions.push(NicAction::Later { at: now + until_next, event: NicEvent::Ready });
        }
    }

    /// Selects the next queue that has a frame to send.
    fn select_queue(&mut self) {
        let busy = || (0..).zip(&self.rings).filter(|(_, ring)| !ring.is_empty());
        let next = busy().find(|&(queue, _)| queue > self.current).or_else(|| busy().next());
        self.is_active = next.is_some();
        self.current = next.map_or(self.current, |(queue, _)| queue);
    }

    pub(super) fn handle_done(&mut self, queue: u16) {
        self.rings[usize::from(queue)].complete();
    }

    /// Prepares a test: adds this many descriptors of a queue whose frames have been sent and whose
    /// completion is due.
    #[cfg(test)]
    pub(super) fn expect_completions(&mut self, queue: u16, descriptors: usize) {
        self.rings[usize::from(queue)].expect_completions(descriptors);
    }

    pub(super) fn check(&self) {
        for ring in &self.rings {
            ring.check(self.parameters.ring);
        }
        let is_there = !self.rings[usize::from(self.current)].is_empty();
        assert!(
            !self.is_active || is_there,
            "the current ring of an active transmitter has a frame"
        );
        let is_idle = self.rings.iter().all(|ring| ring.is_empty());
        assert!(self.is_active || is_idle, "an idle transmitter has no frames");
    }
}

#[cfg(test)]
mod tests {
    use super::super::arbiter::{Arbiter, BusParameters};
    use super::super::parameters::{DmaParameters, ReceiveParameters};
    use super::*;
    use crate::frame::Frames;

    #[test]
    fn underruns_are_predicted_each_time_a_frame_begins_to_leave() {
        // The FIFO holds 48 bytes. A word of two bytes takes 2 us from memory over the bus, but
        // only 1.6 us on the wire. So the FIFO empties while a long frame is sent: it underruns.
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
        transmitter.post(
            now,
            0,
            TransmitFrame { frame, length: 1_514, is_last: true },
            &mut actions,
        );
        transmitter.post(
            now,
            0,
            TransmitFrame { frame: short, length: 60, is_last: true },
            &mut actions,
        );
        actions.clear();
        transmitter.handle_ready(now, &receiver, &mut actions);
        assert_eq!(
            actions,
            [NicAction::Request { frame }],
            "no prediction before the frame begins"
        );
        actions.clear();
        transmitter.handle_sending(now, &mut actions);
        let [NicAction::Truncate { frame: which, cut: Some(cut) }] = actions[..] else {
            panic!("{actions:?}")
        };
        assert!(which == frame && (48..1_514).contains(&cut) && transmitter.is_aborted());
        actions.clear();
        transmitter.handle_sending(now, &mut actions);
        assert_eq!(actions, [], "an unchanged prediction is not reported again");
        transmitter.handle_sent(now, true, &mut actions);
        actions.clear();
        transmitter.handle_sending(now, &mut actions);
        assert!(
            actions.is_empty() && !transmitter.is_aborted(),
            "60 bytes are sent before it can underrun"
        );
        transmitter.check();
    }
}
