//! A network interface controller (NIC), with descriptor rings between its driver and a wire. All
//! NICs have one model; a file of parameters describes each real NIC.
//!
//! Methods handle the actions of the driver and of the wire, and return the actions that result.
//! The result depends neither on the processor that serves the NIC nor on the contents of frames.

mod arbiter;
mod completion_queue;
mod descriptor_ring;
mod fifo;
mod parameters;
mod receive;
mod transmit;

pub(crate) use arbiter::{Arbiter, BusParameters};
pub use completion_queue::QueueStatistics;
pub(crate) use descriptor_ring::TransmitFrame;
pub(crate) use parameters::{MOST_QUEUES, NicParameters, OffloadParameters};

use crate::frame::FrameId;
use completion_queue::CompletionQueue;
use fifo::Fifo;
use linerate_units::{Span, Tick};
use receive::Receiver;
use serde::Serialize;
use transmit::Transmitter;

/// Number of the first queue, and of the only queue of a NIC without RSS.
pub(crate) const FIRST_QUEUE: u16 = 0;

/// The expiry of a timer of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicEvent {
    /// The NIC is ready to send the frame at the head of the transmit ring that it is serving.
    Ready,
    /// All frames of a descriptor have been sent, and the NIC can now report its completion to the
    /// driver.
    DescriptorDone { queue: u16 },
    /// A received frame has been written into memory completely.
    Stored { queue: u16 },
    /// The interrupt moderation timer of a queue has expired.
    Moderated { queue: u16 },
}

/// An effect of the NIC on other components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicAction {
    /// Schedule an event of the NIC.
    Later { at: Tick, event: NicEvent },
    /// Request the wire in order to send a frame.
    Request { frame: FrameId },
    /// Send only the first `cut` bytes of the frame that begins to leave, and a wrong check
    /// sequence, because the FIFO will underrun. `None` means the whole frame, after an earlier
    /// attempt to send it was truncated.
    Truncate { frame: FrameId, cut: Option<usize> },
    /// Do not begin to send the frame that waits for the wire before this time.
    Hold { until: Tick },
    /// Release the NIC's reference to a frame.
    Release { frame: FrameId },
    /// Interrupt the processor that serves this queue.
    Interrupt { queue: u16 },
    /// Increase the fraction of the bus that the NIC uses by this much, in 65,536ths.
    TakeBus { share: u64 },
    /// Decrease the fraction of the bus that the NIC uses by this much, in 65,536ths.
    GiveBus { share: u64 },
}

/// A completed operation that the NIC reports to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// This frame has been received.
    Received(FrameId),
    /// The frames of a descriptor have been sent.
    Transmitted,
}

/// Counters of a NIC, named like the columns of /proc/net/dev.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NicStatistics {
    /// Bytes of frames received.
    pub receive_bytes: u64,
    /// Frames received.
    pub receive_packets: u64,
    /// Frames received with a wrong check sequence.
    pub receive_errors: u64,
    /// Frames dropped because the receive ring was full.
    pub receive_drops: u64,
    /// Received frames that LRO merged into the frame before them.
    pub receive_joined: u64,
    /// Frames lost because they began during the NIC's dead time, or overflowed its FIFO.
    pub receive_fifo: u64,
    /// Bytes of frames sent.
    pub transmit_bytes: u64,
    /// Frames sent.
    pub transmit_packets: u64,
    /// Frames not sent: abandoned after 16 collisions, or aborted by a FIFO underrun.
    pub transmit_errors: u64,
    /// Frames dropped because the driver's queue was full.
    pub transmit_drops: u64,
    /// Frames not sent because of a FIFO underrun.
    pub transmit_fifo: u64,
    /// Number of collisions of the NIC's frames.
    pub collisions: u64,
    /// Number of interrupts.
    pub interrupts: u64,
}

/// A network interface controller.
#[derive(Debug)]
pub(crate) struct Nic {
    parameters: NicParameters,
    /// Fraction of the bus that the NIC uses while it sends or receives a frame, in 65,536ths.
    share: u64,
    transmitter: Transmitter,
    receiver: Receiver,
    /// The receive FIFO, or `None` if it cannot overflow.
    fifo: Option<Fifo>,
    /// Time of one byte on the wire.
    byte: Span,
    queues: Vec<CompletionQueue>,
    /// Counters of the whole NIC. Those that each queue counts are zero here; [`Nic::statistics`]
    /// adds the sums over the queues.
    counted: NicStatistics,
}

impl Nic {
    /// Creates a NIC on a wire that carries one byte in the time `byte`. `arbiter` determines when
    /// the NIC gets the machine's bus.
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
            queues: (0..queues).map(CompletionQueue::new).collect(),
            counted: NicStatistics::default(),
            parameters,
        }
    }

    /// Returns the counters, summed over all queues.
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

    /// Returns the counters of each queue.
    pub(crate) fn queues(&self) -> impl Iterator<Item = QueueStatistics> {
        self.queues.iter().map(|queue| queue.counted)
    }

    /// Returns whether the transmit ring of a queue has a free descriptor.
    pub(crate) fn has_room(&self, queue: u16) -> bool {
        self.transmitter.has_room(queue)
    }

    /// Counts a frame that the driver dropped because the driver's queue was full.
    pub(crate) fn note_drop(&mut self, queue: u16) {
        self.queues[usize::from(queue)].counted.transmit_drops += 1;
    }

    /// Returns the parameters of checksum offload, TSO and LRO.
    pub(crate) const fn offload(&self) -> &OffloadParameters {
        &self.parameters.offload
    }

    /// Adds a frame to a transmit ring, which must have a free descriptor.
    pub(crate) fn transmit(
        &mut self,
        now: Tick,
        queue: u16,
        frame: TransmitFrame,
        actions: &mut Vec<NicAction>,
    ) {
        self.transmitter.post(now, queue, frame, actions);
    }

    /// Handles an expired timer of the NIC.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: NicEvent,
        actions: &mut Vec<NicAction>,
    ) {
        match event {
            NicEvent::Ready => self.transmitter.handle_ready(now, &self.receiver, actions),
            NicEvent::DescriptorDone { queue } => {
                self.transmitter.handle_done(queue);
                self.complete(now, queue, Completion::Transmitted, actions);
            }
            NicEvent::Stored { queue } => {
                if let Some(frame) = self.receiver.take_stored(queue) {
                    self.complete(now, queue, Completion::Received(frame), actions);
                }
            }
            NicEvent::Moderated { queue } => {
                self.queues[usize::from(queue)].handle_moderated(actions);
            }
        }
    }

    fn complete(
        &mut self,
        now: Tick,
        queue: u16,
        completion: Completion,
        actions: &mut Vec<NicAction>,
    ) {
        self.queues[usize::from(queue)].push(now, completion, &self.parameters.interrupt, actions);
    }

    /// Notes that the requested frame begins to leave.
    pub(crate) fn handle_sending(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        actions.push(NicAction::TakeBus { share: self.share });
        self.transmitter.handle_sending(now, actions);
    }

    /// Notes that the frame being sent collided. The medium, not the NIC, will repeat it.
    pub(crate) fn handle_collided(&mut self, actions: &mut Vec<NicAction>) {
        self.counted.collisions += 1;
        actions.push(NicAction::GiveBus { share: self.share });
    }

    /// Notes that the transmission of a frame of `length` bytes has ended. The frame was sent
    /// completely, truncated by an underrun, or abandoned after too many collisions (`given_up`).
    pub(crate) fn handle_sent(
        &mut self,
        now: Tick,
        length: usize,
        given_up: bool,
        actions: &mut Vec<NicAction>,
    ) {
        let aborted = self.transmitter.is_aborted() && !given_up;
        if given_up || aborted {
            self.counted.transmit_errors += 1;
            self.counted.transmit_fifo += u64::from(aborted);
        } else {
            let counted = &mut self.queues[usize::from(self.transmitter.current_queue())].counted;
            counted.transmit_packets += 1;
            counted.transmit_bytes += length as u64;
        }
        if !given_up {
            actions.push(NicAction::GiveBus { share: self.share });
        }
        self.receiver.handle_own_frame(now);
        self.transmitter.handle_sent(now, aborted, actions);
    }

    /// Notes that a frame for this NIC begins to arrive.
    pub(crate) fn handle_arriving(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        if self.receiver.handle_begin(now) {
            actions.push(NicAction::TakeBus { share: self.share });
        }
    }

    /// Notes that the arriving signal ended as a fragment: an incomplete frame.
    pub(crate) fn handle_fragment(&mut self, actions: &mut Vec<NicAction>) {
        if self.receiver.handle_fragment() {
            actions.push(NicAction::GiveBus { share: self.share });
        }
    }

    /// Handles a received frame that RSS assigned to `queue`, and takes a reference to it.
    pub(crate) fn handle_arrived(
        &mut self,
        now: Tick,
        queue: u16,
        frame: FrameId,
        length: usize,
        intact: bool,
        actions: &mut Vec<NicAction>,
    ) {
        let is_received = self.receiver.handle_end(now);
        if is_received {
            actions.push(NicAction::GiveBus { share: self.share });
            self.transmitter.handle_received(now, actions);
        }
        let is_lost = !is_received || self.overflows(now, length);
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

    /// Returns whether the FIFO overflowed while a frame arrived. The frame has `length` bytes, of
    /// which the final one arrived at `now`.
    fn overflows(&self, now: Tick, length: usize) -> bool {
        let time = self.byte * length as u64;
        let began = Tick::from_picos(now.as_picos().saturating_sub(time.as_picos()));
        self.fifo.is_some_and(|fifo| fifo.overflows(began, length as u64))
    }

    /// Removes and returns the oldest completion of a queue; `None` if there is none.
    pub(crate) fn poll_completion(&mut self, queue: u16) -> Option<Completion> {
        self.queues[usize::from(queue)].poll_completion()
    }

    /// Frees the slots of the receive ring that a frame of this length occupied, after the driver
    /// has taken the frame.
    pub(crate) fn free_slots(&mut self, queue: u16, length: usize) {
        self.receiver.free(queue, length);
    }

    /// Counts a frame that LRO merged into the frame before it, and frees its slots of the receive
    /// ring.
    pub(crate) fn note_merged(&mut self, queue: u16, length: usize) {
        self.counted.receive_joined += 1;
        self.receiver.free(queue, length);
    }

    /// Returns the number of frames of this length that fit a receive ring.
    pub(crate) const fn room(&self, length: usize) -> usize {
        self.receiver.room(length)
    }

    /// Returns the number of used descriptors in a queue's transmit ring, and of used slots in its
    /// receive ring.
    pub(crate) fn held(&self, queue: u16) -> [usize; 2] {
        [self.transmitter.held(queue), self.receiver.used(queue)]
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        self.transmitter.check();
        self.receiver.check();
    }
}

#[cfg(test)]
mod tests;
