//! A network card: commands and receive areas between a driver and a wire. One engine, and a file of numbers for
//! each card there was.
//!
//! It is told what the driver and the wire do, and answers with actions; it knows neither the processor that
//! serves it nor what is in a frame.

mod arbiter;
mod fifo;
mod parameters;
mod queue;
mod receive;
mod transmit;

pub(crate) use arbiter::{Arbiter, BusParameters};
pub(crate) use parameters::{NicParameters, OffloadParameters};
pub use queue::QueueStatistics;
pub(crate) use transmit::Piece;

use crate::frame::FrameId;
use fifo::Fifo;
use linerate_units::{Span, Tick};
use queue::Queue;
use receive::Receiver;
use serde::Serialize;
use transmit::Transmitter;

/// The queue of a card that has no others.
pub(crate) const FIRST_QUEUE: u16 = 0;

/// What a card wants to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicEvent {
    /// The frame at the head of the ring is ready to leave.
    Ready,
    /// The command whose frame has left is done.
    CommandDone { queue: u16 },
    /// A received frame is in memory.
    Stored { queue: u16 },
    /// Enough time has passed to interrupt for what there is to tell.
    Moderated { queue: u16 },
}

/// What follows for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicAction {
    /// Tell me at that time.
    Later { at: Tick, event: NicEvent },
    /// This frame wants to get onto the wire.
    Request { frame: FrameId },
    /// The frame that begins to leave ends after so many bytes, with a wrong check sequence, because the others will not
    /// be there in time; or after all of them, where it was said before that it would not.
    Cut { frame: FrameId, cut: Option<usize> },
    /// What it wants to get onto the wire, if anything, may not leave before then.
    Hold { until: Tick },
    /// Nobody needs this frame any more.
    Release { frame: FrameId },
    /// The processor is asked for that serves this queue.
    Interrupt { queue: u16 },
    /// The card holds this much more of the bus, in 65,536ths.
    TakeBus { share: u64 },
    /// Or less.
    GiveBus { share: u64 },
}

/// Something that a card has to tell its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// A frame has been received.
    Received(FrameId),
    /// A command to send is done.
    Transmitted,
}

/// What a card has counted, in the words of /proc/net/dev.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NicStatistics {
    /// Bytes of frames received.
    pub receive_bytes: u64,
    /// Frames received.
    pub receive_packets: u64,
    /// Frames with a wrong check sequence.
    pub receive_errors: u64,
    /// Frames for which there was no room in the receive area.
    pub receive_drops: u64,
    /// Frames that were joined to the one before.
    pub receive_joined: u64,
    /// Frames that began while the card was deaf, or that its FIFO had no room for.
    pub receive_fifo: u64,
    /// Bytes of frames sent.
    pub transmit_bytes: u64,
    /// Frames sent.
    pub transmit_packets: u64,
    /// Frames given up after 16 collisions, or broken off because the FIFO ran empty.
    pub transmit_errors: u64,
    /// Frames that the driver's queue had no room for.
    pub transmit_drops: u64,
    /// Frames broken off because the FIFO ran empty.
    pub transmit_fifo: u64,
    /// Collisions.
    pub collisions: u64,
    /// Interrupts.
    pub interrupts: u64,
}

/// A card.
#[derive(Debug)]
pub(crate) struct Nic {
    parameters: NicParameters,
    /// What it takes of the bus while a frame is on the wire.
    share: u64,
    transmitter: Transmitter,
    receiver: Receiver,
    /// The receiving half's FIFO, if it can overflow.
    fifo: Option<Fifo>,
    /// A byte on the wire.
    byte: Span,
    queues: Vec<Queue>,
    /// What no queue has counted.
    counted: NicStatistics,
}

impl Nic {
    /// A card on a wire where a byte takes `byte`, and on a bus with this arbiter.
    pub(crate) fn new(parameters: NicParameters, byte: Span, arbiter: Arbiter) -> Self {
        let fifo = |bytes: Option<u64>| Fifo::new(bytes?, &parameters.dma, byte, arbiter);
        let (sends, receives) = (fifo(parameters.transmit.fifo), fifo(parameters.receive.fifo));
        let queues = parameters.queues.get();
        Self {
            share: parameters.dma.bus_share(byte),
            fifo: receives,
            byte,
            transmitter: Transmitter::new(parameters.transmit.clone(), queues, sends),
            receiver: Receiver::new(parameters.receive.clone(), queues),
            queues: (0..queues).map(Queue::new).collect(),
            counted: NicStatistics::default(),
            parameters,
        }
    }

    /// What it has counted, all queues together.
    pub(crate) fn statistics(&self) -> NicStatistics {
        self.queues.iter().fold(self.counted, |mut sum, queue| {
            sum.receive_bytes += queue.counted.receive_bytes;
            sum.receive_packets += queue.counted.receive_packets;
            sum.receive_drops += queue.counted.receive_drops;
            sum.transmit_bytes += queue.counted.transmit_bytes;
            sum.transmit_packets += queue.counted.transmit_packets;
            sum.transmit_drops += queue.counted.transmit_drops;
            sum.interrupts += queue.counted.interrupts;
            sum
        })
    }

    /// What each queue has counted.
    pub(crate) fn queues(&self) -> impl Iterator<Item = QueueStatistics> {
        self.queues.iter().map(|queue| queue.counted)
    }

    /// Has the ring of a queue room for a command more?
    pub(crate) fn has_room(&self, queue: u16) -> bool {
        self.transmitter.has_room(queue)
    }

    /// The driver's queue in front of this one was full.
    pub(crate) fn note_drop(&mut self, queue: u16) {
        self.queues[usize::from(queue)].counted.transmit_drops += 1;
    }

    /// What it does in place of the host.
    pub(crate) const fn offload(&self) -> &OffloadParameters {
        &self.parameters.offload
    }

    /// The driver gives a command to send; there is room for it.
    pub(crate) fn transmit(
        &mut self,
        now: Tick,
        queue: u16,
        piece: Piece,
        actions: &mut Vec<NicAction>,
    ) {
        self.transmitter.queue(now, queue, piece, actions);
    }

    /// What the card wanted to be told of.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: NicEvent,
        actions: &mut Vec<NicAction>,
    ) {
        match event {
            NicEvent::Ready => self.transmitter.handle_ready(now, &self.receiver, actions),
            NicEvent::CommandDone { queue } => {
                self.transmitter.handle_done(queue);
                self.tell(now, queue, Completion::Transmitted, actions);
            }
            NicEvent::Stored { queue } => {
                if let Some(frame) = self.receiver.take_stored(queue) {
                    self.tell(now, queue, Completion::Received(frame), actions);
                }
            }
            NicEvent::Moderated { queue } => {
                self.queues[usize::from(queue)].handle_moderated(actions)
            }
        }
    }

    fn tell(
        &mut self,
        now: Tick,
        queue: u16,
        completion: Completion,
        actions: &mut Vec<NicAction>,
    ) {
        self.queues[usize::from(queue)].tell(now, completion, &self.parameters.interrupt, actions);
    }

    /// The frame begins to leave.
    pub(crate) fn handle_sending(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        actions.push(NicAction::TakeBus { share: self.share });
        self.transmitter.handle_sending(now, actions);
    }

    /// It met another one; the card tries again.
    pub(crate) fn handle_collided(&mut self, actions: &mut Vec<NicAction>) {
        self.counted.collisions += 1;
        actions.push(NicAction::GiveBus { share: self.share });
    }

    /// It has left, or was given up.
    pub(crate) fn handle_sent(
        &mut self,
        now: Tick,
        length: usize,
        given_up: bool,
        actions: &mut Vec<NicAction>,
    ) {
        let broken_off = self.transmitter.is_broken_off() && !given_up;
        if given_up || broken_off {
            self.counted.transmit_errors += 1;
            self.counted.transmit_fifo += u64::from(broken_off);
        } else {
            let counted = &mut self.queues[usize::from(self.transmitter.turn())].counted;
            counted.transmit_packets += 1;
            counted.transmit_bytes += length as u64;
        }
        if !given_up {
            actions.push(NicAction::GiveBus { share: self.share });
        }
        self.receiver.handle_own_frame(now);
        self.transmitter.handle_sent(now, broken_off, actions);
    }

    /// A frame for this card begins.
    pub(crate) fn handle_arriving(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        if self.receiver.handle_begin(now) {
            actions.push(NicAction::TakeBus { share: self.share });
        }
    }

    /// What began was no frame.
    pub(crate) fn handle_fragment(&mut self, actions: &mut Vec<NicAction>) {
        if self.receiver.handle_fragment() {
            actions.push(NicAction::GiveBus { share: self.share });
        }
    }

    /// A frame has arrived, by this queue; the card holds it now.
    pub(crate) fn handle_arrived(
        &mut self,
        now: Tick,
        queue: u16,
        frame: FrameId,
        length: usize,
        intact: bool,
        actions: &mut Vec<NicAction>,
    ) {
        let was_heard = self.receiver.handle_end(now);
        if was_heard {
            actions.push(NicAction::GiveBus { share: self.share });
            self.transmitter.handle_received(now, actions);
        }
        let is_lost = !was_heard || self.overflows(now, length);
        let counted = &mut self.queues[usize::from(queue)].counted;
        let reason = if is_lost {
            &mut self.counted.receive_fifo
        } else if !intact {
            &mut self.counted.receive_errors
        } else if !self.receiver.has_room(now, queue, length) {
            &mut counted.receive_drops
        } else {
            counted.receive_packets += 1;
            counted.receive_bytes += length as u64;
            let at = self.receiver.store(now, queue, frame, length);
            return actions.push(NicAction::Later { at, event: NicEvent::Stored { queue } });
        };
        *reason += 1;
        actions.push(NicAction::Release { frame });
    }

    /// Has a frame that has just ended been too much for the FIFO?
    fn overflows(&self, now: Tick, length: usize) -> bool {
        let time = self.byte * length as u64;
        let began = Tick::from_picos(now.as_picos().saturating_sub(time.as_picos()));
        self.fifo.is_some_and(|fifo| fifo.overflows(began, length as u64))
    }

    /// The driver of a queue asks what there is: the oldest thing.
    pub(crate) fn poll_completion(&mut self, queue: u16) -> Option<Completion> {
        self.queues[usize::from(queue)].poll_completion()
    }

    /// The driver gives the place of a frame of this length back.
    pub(crate) fn give_back(&mut self, queue: u16, length: usize) {
        self.receiver.give_back(queue, length);
    }

    /// A frame of this length is a part of the one before now, and needs no place of its own.
    pub(crate) fn note_joined(&mut self, queue: u16, length: usize) {
        self.counted.receive_joined += 1;
        self.receiver.give_back(queue, length);
    }

    /// How many frames of this length each queue holds until the driver takes them.
    pub(crate) const fn room(&self, length: usize) -> usize {
        self.receiver.room(length)
    }

    /// Frames that a queue is to send, and places of its receive area that are taken.
    pub(crate) fn held(&self, queue: u16) -> [usize; 2] {
        [self.transmitter.held(queue), self.receiver.taken(queue)]
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        self.transmitter.check();
        self.receiver.check();
    }
}
