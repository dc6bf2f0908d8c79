//! A relay: a machine with several NICs that forwards frames. A router forwards IP packets, a
//! bridge Ethernet frames. When a relay has received a complete frame, its processor decides where
//! to forward the frame. The frame then waits in the queue in front of the outgoing NIC.
//!
//! Every queue on this path has a limit: the receive ring of a NIC, the queue in front of the
//! processor, the queue in front of the outgoing NIC, and that NIC's transmit ring.

mod bridge;
mod parameters;
mod router;

pub(crate) use bridge::Bridge;
pub(crate) use parameters::RelayParameters;
pub(crate) use router::{
    Interface, NETWORK_BITS, NETWORK_BITS_IPV6, NetworkNumber, NetworkRoute, Router, network_of,
};

use crate::frame::{FrameId, Frames};
use crate::machine::{Cpu, Due, Level};
use crate::medium::{EgressQueue, EgressStatistics, on_wire};
use crate::nic::{Completion, FIRST_QUEUE, Nic, NicAction, NicEvent, NicStatistics, TransmitFrame};
use linerate_units::{Span, Tick};
use serde::Serialize;

/// The expiry of a timer of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEvent {
    /// The running job ends, unless its schedule has a newer version than `plan`.
    Job { plan: u32 },
    /// A timer of the NIC with this number expires.
    Nic(u16, NicEvent),
}

/// An effect of a relay on other components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayAction {
    /// Schedule an event of the relay.
    Later { at: Tick, event: RelayEvent },
    /// Request the wire of a NIC in order to send a frame.
    Request { nic: u16, frame: FrameId },
    /// Truncate the frame that a NIC begins to send, see [`NicAction::Truncate`].
    Truncate { nic: u16, frame: FrameId, cut: Option<usize> },
    /// Do not begin to send the frame that waits for a NIC's wire before `until`.
    Hold { nic: u16, until: Tick },
    /// Release the relay's reference to a frame.
    Release { frame: FrameId },
}

/// A unit of work of the relay's processor. The number is that of the NIC for which it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// The processor enters the NIC's interrupt handler.
    Interrupt(u16),
    /// The driver takes a received frame from the NIC.
    Receive(u16, FrameId),
    /// The driver handles the completion of a frame that the NIC has sent.
    Done(u16),
    /// The processor decides where to forward a frame that arrived on this NIC.
    Forward(u16, FrameId),
}

/// Counters of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RelayStatistics {
    /// Number of forwarded frames. A broadcast counts once for each NIC through which it is sent.
    pub forwarded: u64,
    /// Number of frames to which the relay responded itself. It answers ARP requests, neighbour
    /// solicitations and echo requests, and reports packets that it cannot forward by ICMP errors.
    pub answered: u64,
    /// Number of frames dropped because too many were waiting for the processor.
    pub overrun: u64,
    /// Number of packets whose TTL expired.
    pub expired: u64,
    /// Number of packets without a route, or to an address that no host has.
    pub unreachable: u64,
    /// Number of packets larger than the MTU of the next network.
    pub too_long: u64,
    /// Number of frames not forwarded because they are malformed or of an unknown kind.
    pub ignored: u64,
}

/// The decision what to do with a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Forward the frame through this NIC.
    Forward { nic: u16, frame: FrameId },
    /// Forward copies of the frame through all NICs except the one on which it arrived.
    Flood,
    /// Drop the received frame, and send `frame` in response: an answer, or an ICMP error.
    /// `instead` is the reason why the received frame is not forwarded.
    Answer { nic: u16, frame: FrameId, instead: Reason },
    /// Drop the frame, for this reason.
    Drop(Reason),
}

/// The reason why a received frame is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The packet was addressed to the relay.
    Local,
    Expired,
    Unreachable,
    TooLong,
    Ignored,
}

/// The forwarding rules of a relay.
#[derive(Debug)]
pub(crate) enum Forwarding {
    /// Forwards IP packets by destination address.
    Router(Router),
    /// Forwards Ethernet frames by MAC address.
    Bridge(Bridge),
}

/// A NIC of a relay, with the queue in front of it.
#[derive(Debug)]
pub(crate) struct RelayNic {
    pub(crate) nic: Nic,
    pub(crate) egress: EgressQueue,
}

/// The part of the state of a router or a bridge that the timeline shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelaySnapshot {
    /// Priority level of the running job; `None` if the processor is idle.
    pub(crate) level: Option<Level>,
    /// Percentage of bus time that the NICs use.
    pub(crate) bus: u64,
    /// Number of received frames that wait for the processor.
    pub(crate) input: usize,
    /// For each NIC: the number of frames in the queue in front of it, the used descriptors of its
    /// transmit ring, and the used slots of its receive ring.
    pub(crate) nics: Vec<[usize; 3]>,
}

/// A router or a bridge.
#[derive(Debug)]
pub(crate) struct Relay {
    parameters: RelayParameters,
    cpu: Cpu<Job>,
    nics: Vec<RelayNic>,
    forwarding: Forwarding,
    /// Number of received frames that wait for the processor. Invariant: at most
    /// `parameters.input`.
    waiting: usize,
    counted: RelayStatistics,
    nic_actions: Vec<NicAction>,
}

impl Relay {
    /// Creates a relay with these NICs, which it numbers from 0.
    pub(crate) fn new(
        parameters: RelayParameters,
        forwarding: Forwarding,
        nics: Vec<RelayNic>,
    ) -> Self {
        Self {
            cpu: Cpu::new(parameters.machine.bus_demand, parameters.machine.bus.taken()),
            parameters,
            nics,
            forwarding,
            waiting: 0,
            counted: RelayStatistics::default(),
            nic_actions: Vec::with_capacity(16),
        }
    }

    /// Returns the busy time of the processor, in total and by priority level.
    pub(crate) fn busy(&self) -> (Span, [Span; 3]) {
        self.cpu.busy()
    }

    /// Returns the counters of the relay.
    pub(crate) const fn statistics(&self) -> &RelayStatistics {
        &self.counted
    }

    /// Returns the counters of each NIC and of the queue in front of it.
    pub(crate) fn nics(&self) -> impl Iterator<Item = (NicStatistics, &EgressStatistics)> {
        self.nics.iter().map(|nic| (nic.nic.statistics(), nic.egress.statistics()))
    }

    /// Handles an expired timer of the relay or of one of its NICs.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: RelayEvent,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        match event {
            RelayEvent::Job { plan } => {
                if let Some((_, job)) = self.cpu.take_done(now, plan) {
                    self.finish(now, job, frames, actions);
                }
                self.resume(now, actions);
            }
            RelayEvent::Nic(nic, event) => {
                self.handle_nic(
                    now,
                    nic,
                    |nic, actions| nic.handle_event(now, event, actions),
                    actions,
                );
            }
        }
    }

    /// Calls a method of a NIC and handles the actions that it returns.
    pub(crate) fn handle_nic(
        &mut self,
        now: Tick,
        nic: u16,
        call: impl FnOnce(&mut Nic, &mut Vec<NicAction>),
        actions: &mut Vec<RelayAction>,
    ) {
        call(&mut self.nics[usize::from(nic)].nic, &mut self.nic_actions);
        self.act_for_nic(now, nic, actions);
        self.resume(now, actions);
    }

    /// Executes the pending actions of a NIC.
    fn act_for_nic(&mut self, now: Tick, nic: u16, actions: &mut Vec<RelayAction>) {
        for index in 0..self.nic_actions.len() {
            match self.nic_actions[index] {
                NicAction::Interrupt { .. } => {
                    self.cpu.add(
                        Level::Driver,
                        self.parameters.machine.costs.interrupt,
                        Job::Interrupt(nic),
                    );
                }
                NicAction::TakeBus { share } => {
                    schedule(self.cpu.change_bus(now, |taken| taken + share), actions);
                }
                NicAction::GiveBus { share } => {
                    schedule(self.cpu.change_bus(now, |taken| taken - share), actions);
                }
                NicAction::Later { at, event } => {
                    actions.push(RelayAction::Later { at, event: RelayEvent::Nic(nic, event) });
                }
                NicAction::Request { frame } => actions.push(RelayAction::Request { nic, frame }),
                NicAction::Truncate { frame, cut } => {
                    actions.push(RelayAction::Truncate { nic, frame, cut });
                }
                NicAction::Hold { until } => actions.push(RelayAction::Hold { nic, until }),
                NicAction::Release { frame } => actions.push(RelayAction::Release { frame }),
            }
        }
        self.nic_actions.clear();
    }

    /// Starts the most urgent job, and schedules its end unless the job is running already.
    fn resume(&mut self, now: Tick, actions: &mut Vec<RelayAction>) {
        schedule(self.cpu.resume(now), actions);
    }

    /// Applies the effect of a job whose work is done.
    fn finish(&mut self, now: Tick, job: Job, frames: &mut Frames, actions: &mut Vec<RelayAction>) {
        match job {
            Job::Interrupt(nic) => self.service_nic(nic, frames),
            Job::Receive(nic, frame) => self.input(nic, frame, frames),
            Job::Done(nic) => self.refill_nic(now, nic, frames, actions),
            Job::Forward(nic, frame) => {
                self.waiting -= 1;
                let decision = match &mut self.forwarding {
                    Forwarding::Router(router) => router.decide(nic, frame, frames),
                    Forwarding::Bridge(bridge) => bridge.decide(nic, frame, frames),
                };
                self.execute(now, nic, frame, decision, frames, actions);
            }
        }
    }

    /// Reads the completions of a NIC, and queues the driver's work.
    fn service_nic(&mut self, nic: u16, frames: &Frames) {
        let costs = &self.parameters.machine.costs;
        while let Some(completion) = self.nics[usize::from(nic)].nic.poll_completion(FIRST_QUEUE) {
            match completion {
                Completion::Received(frame) => {
                    let copy = costs.nic_copy * frames[frame].length() as u64;
                    self.cpu.add(
                        Level::Driver,
                        costs.driver_receive + copy,
                        Job::Receive(nic, frame),
                    );
                }
                Completion::Transmitted => {
                    self.cpu.add(Level::Driver, costs.driver_done, Job::Done(nic));
                }
            }
        }
    }

    /// Queues a received frame for the processor. Drops the frame if that queue is full.
    fn input(&mut self, nic: u16, frame: FrameId, frames: &mut Frames) {
        let length = frames[frame].length();
        self.nics[usize::from(nic)].nic.free_slots(FIRST_QUEUE, length);
        if self.waiting == self.parameters.input {
            self.counted.overrun += 1;
            frames.release(frame);
            return;
        }
        self.waiting += 1;
        let costs = &self.parameters.machine.costs;
        let work = self.parameters.forward + costs.driver_transmit + costs.nic_copy * length as u64;
        self.cpu.add(Level::Network, work, Job::Forward(nic, frame));
    }

    fn execute(
        &mut self,
        now: Tick,
        came_by: u16,
        frame: FrameId,
        decision: Decision,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        match decision {
            Decision::Forward { nic, frame } => {
                self.counted.forwarded += 1;
                self.queue(now, nic, frame, frames, actions);
            }
            Decision::Flood => {
                for nic in (0..).take(self.nics.len()).filter(|&nic| nic != came_by) {
                    self.counted.forwarded += 1;
                    // Each NIC gets its own copy of the flooded frame. A NIC truncates the frame if
                    // its FIFO underruns, and this must not affect the frames that the other NICs
                    // send.
                    let copy = frames.copy(frame);
                    self.queue(now, nic, copy, frames, actions);
                }
                frames.release(frame);
            }
            Decision::Answer { nic, frame: answer, instead } => {
                self.counted.answered += 1;
                self.count(instead);
                frames.release(frame);
                self.queue(now, nic, answer, frames, actions);
            }
            Decision::Drop(reason) => {
                self.count(reason);
                frames.release(frame);
            }
        }
    }

    const fn count(&mut self, reason: Reason) {
        match reason {
            Reason::Local => {}
            Reason::Expired => self.counted.expired += 1,
            Reason::Unreachable => self.counted.unreachable += 1,
            Reason::TooLong => self.counted.too_long += 1,
            Reason::Ignored => self.counted.ignored += 1,
        }
    }

    fn queue(
        &mut self,
        now: Tick,
        nic: u16,
        frame: FrameId,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        let length = on_wire(frames[frame].length());
        self.nics[usize::from(nic)].egress.handle_frame(now, frame, length, frames);
        self.refill_nic(now, nic, frames, actions);
    }

    /// Moves frames from the queue of a NIC to its transmit ring, while the ring has room.
    fn refill_nic(
        &mut self,
        now: Tick,
        nic: u16,
        frames: &mut Frames,
        actions: &mut Vec<RelayAction>,
    ) {
        let RelayNic { nic: device, egress } = &mut self.nics[usize::from(nic)];
        while device.has_room(FIRST_QUEUE) {
            let Some((frame, _)) = egress.poll(now, frames) else { break };
            let sent = TransmitFrame { frame, length: frames[frame].length(), is_last: true };
            device.transmit(now, FIRST_QUEUE, sent, &mut self.nic_actions);
        }
        self.act_for_nic(now, nic, actions);
    }

    /// Returns the state that the timeline shows.
    pub(crate) fn snapshot(&self) -> RelaySnapshot {
        let held = |nic: &RelayNic| {
            let [to_send, received] = nic.nic.held(FIRST_QUEUE);
            [nic.egress.len(), to_send, received]
        };
        RelaySnapshot {
            level: self.cpu.running_level(),
            bus: self.cpu.bus_taken(),
            input: self.waiting,
            nics: self.nics.iter().map(held).collect(),
        }
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        self.cpu.check();
        assert!(
            self.waiting <= self.parameters.input,
            "the frames that wait for the processor do not exceed the limit"
        );
        for nic in &self.nics {
            nic.nic.check();
            nic.egress.check();
        }
    }
}

fn schedule(due: Option<Due>, actions: &mut Vec<RelayAction>) {
    if let Some(due) = due {
        actions.push(RelayAction::Later { at: due.at, event: RelayEvent::Job { plan: due.plan } });
    }
}
