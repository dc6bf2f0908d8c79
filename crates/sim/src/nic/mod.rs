//! A network card: commands and receive areas between a driver and a wire. One engine, and a file of numbers for
//! each card there was.
//!
//! It is told what the driver and the wire do, and answers with actions; it knows neither the processor that
//! serves it nor what is in a frame.

mod arbiter;
mod fifo;
mod parameters;
mod receive;
mod transmit;

pub(crate) use arbiter::{Arbiter, BusParameters};
pub(crate) use parameters::{NicParameters, OffloadParameters};

use crate::frame::FrameId;
use fifo::Fifo;
use linerate_units::{Span, Tick};
use receive::Receiver;
use serde::Serialize;
use std::collections::VecDeque;
use transmit::{Piece, Transmitter};

/// What a card wants to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicEvent {
    /// The frame at the head of the ring is ready to leave.
    Ready,
    /// The command whose frame has left is done.
    CommandDone,
    /// A received frame is in memory.
    Stored,
    /// Enough time has passed to interrupt for what there is to tell.
    Moderated,
}

/// What follows for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicAction {
    /// Tell me at that time.
    Later { at: Tick, event: NicEvent },
    /// This frame wants to get onto the wire; of one whose bytes will not all be there in time, so many, and a wrong
    /// check sequence.
    Request { frame: FrameId, cut: Option<usize> },
    /// What it wants to get onto the wire, if anything, may not leave before then.
    Hold { until: Tick },
    /// Nobody needs this frame any more.
    Release { frame: FrameId },
    /// The processor is asked for.
    Interrupt,
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
    /// What the driver has not been told, the oldest first.
    completions: VecDeque<Completion>,
    /// The driver has been asked for, and has not come yet.
    asked: bool,
    /// The moderating timer runs.
    moderating: bool,
    counted: NicStatistics,
}

impl Nic {
    /// A card on a wire where a byte takes `byte`, and on a bus with this arbiter.
    pub(crate) fn new(parameters: NicParameters, byte: Span, arbiter: Arbiter) -> Self {
        let fifo = |bytes: Option<u64>| Fifo::new(bytes?, &parameters.dma, byte, arbiter);
        let (sends, receives) = (fifo(parameters.transmit.fifo), fifo(parameters.receive.fifo));
        Self {
            share: parameters.dma.bus_share(byte),
            fifo: receives,
            byte,
            transmitter: Transmitter::new(parameters.transmit.clone(), sends),
            receiver: Receiver::new(parameters.receive.clone()),
            completions: VecDeque::with_capacity(16),
            asked: false,
            moderating: false,
            counted: NicStatistics::default(),
            parameters,
        }
    }

    /// What it has counted.
    pub(crate) const fn statistics(&self) -> &NicStatistics {
        &self.counted
    }

    /// Has the ring room for a command more?
    pub(crate) fn has_room(&self) -> bool {
        self.transmitter.has_room()
    }

    /// The driver's queue was full.
    pub(crate) const fn note_drop(&mut self) {
        self.counted.transmit_drops += 1;
    }

    /// What it does in place of the host.
    pub(crate) const fn offload(&self) -> &OffloadParameters {
        &self.parameters.offload
    }

    /// The driver gives a command to send `frame` of `length` bytes; there is room for it. Of a super-frame it is a
    /// piece, and its command is done when the last one has left.
    pub(crate) fn transmit(
        &mut self,
        now: Tick,
        frame: FrameId,
        length: usize,
        is_last: bool,
        actions: &mut Vec<NicAction>,
    ) {
        self.transmitter.queue(now, Piece { frame, length, is_last }, actions);
    }

    /// What the card wanted to be told of.
    pub(crate) fn handle_event(&mut self, now: Tick, event: NicEvent, actions: &mut Vec<NicAction>) {
        match event {
            NicEvent::Ready => self.transmitter.handle_ready(now, &self.receiver, actions),
            NicEvent::CommandDone => {
                self.transmitter.handle_done();
                self.tell(now, Completion::Transmitted, actions);
            }
            NicEvent::Stored => {
                if let Some(frame) = self.receiver.take_stored() {
                    self.tell(now, Completion::Received(frame), actions);
                }
            }
            NicEvent::Moderated => {
                self.moderating = false;
                self.ask(actions);
            }
        }
    }

    /// The frame begins to leave.
    pub(crate) fn handle_sending(&mut self, actions: &mut Vec<NicAction>) {
        actions.push(NicAction::TakeBus { share: self.share });
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
            self.counted.transmit_packets += 1;
            self.counted.transmit_bytes += length as u64;
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

    /// A frame has arrived; the card holds it now.
    pub(crate) fn handle_arrived(
        &mut self,
        now: Tick,
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
        let reason = if !was_heard || self.overflows(now, length) {
            &mut self.counted.receive_fifo
        } else if !intact {
            &mut self.counted.receive_errors
        } else if !self.receiver.has_room(now, length) {
            &mut self.counted.receive_drops
        } else {
            self.counted.receive_packets += 1;
            self.counted.receive_bytes += length as u64;
            let at = self.receiver.store(now, frame, length);
            return actions.push(NicAction::Later { at, event: NicEvent::Stored });
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

    /// The driver asks what there is: the oldest thing.
    pub(crate) fn poll_completion(&mut self) -> Option<Completion> {
        self.asked = false;
        self.completions.pop_front()
    }

    /// The driver gives the place of a frame of this length back.
    pub(crate) const fn give_back(&mut self, length: usize) {
        self.receiver.give_back(length);
    }

    /// A frame of this length is a part of the one before now, and needs no place of its own.
    pub(crate) const fn note_joined(&mut self, length: usize) {
        self.counted.receive_joined += 1;
        self.receiver.give_back(length);
    }

    /// How many frames of this length it holds until the driver takes them.
    pub(crate) const fn room(&self, length: usize) -> usize {
        self.receiver.room(length)
    }

    /// Frames that it is to send, and places of the receive area that are taken.
    pub(crate) fn held(&self) -> [usize; 2] {
        [self.transmitter.held(), self.receiver.taken()]
    }

    fn tell(&mut self, now: Tick, completion: Completion, actions: &mut Vec<NicAction>) {
        self.completions.push_back(completion);
        let moderation = &self.parameters.interrupt;
        if moderation.delay == Span::ZERO || self.completions.len() >= moderation.frames {
            self.ask(actions);
        } else if !self.moderating && !self.asked {
            self.moderating = true;
            actions.push(NicAction::Later { at: now + moderation.delay, event: NicEvent::Moderated });
        }
    }

    fn ask(&mut self, actions: &mut Vec<NicAction>) {
        if !self.asked && !self.completions.is_empty() {
            self.asked = true;
            self.counted.interrupts += 1;
            actions.push(NicAction::Interrupt);
        }
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        self.transmitter.check();
        self.receiver.check();
    }
}
