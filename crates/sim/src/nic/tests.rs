//! Tests of a NIC's actions towards its driver and its wire, and of its counters.

use super::parameters::{
    DmaParameters, InterruptParameters, ReceiveParameters, TransmitParameters,
};
use super::*;
use crate::frame::Frames;
use std::num::NonZeroU16;

fn micros(count: u64) -> Span {
    Span::from_picos(count * 1_000_000)
}

fn at(count: u64) -> Tick {
    Tick::ZERO + micros(count)
}

/// Returns the parameters of a NIC whose operations take no time and never fail.
fn parameters(queues: u16) -> NicParameters {
    let zero = Span::ZERO;
    NicParameters {
        transmit: TransmitParameters {
            ring: 8,
            start: zero,
            chained: zero,
            done: zero,
            after_receive: zero,
            fifo: None,
            retries: 0,
            restart: zero,
        },
        receive: ReceiveParameters {
            ring: 8,
            page: 0,
            done: zero,
            deaf: zero,
            restart: zero,
            fifo: None,
        },
        dma: DmaParameters { word: 2, cycle: zero, burst: 8 },
        interrupt: InterruptParameters { delay: zero, frames: 1 },
        offload: OffloadParameters::default(),
        queues: NonZeroU16::new(queues).expect("at least one"),
        clocks_per_byte: None,
    }
}

/// Creates a NIC on a wire of 10 Mb/s with an unshared bus.
fn new_nic(parameters: NicParameters) -> Nic {
    Nic::new(parameters, Span::from_picos(800_000), Arbiter::new(BusParameters::default(), 1, 0))
}

/// Creates a NIC with a FIFO of 48 bytes, on a bus that is slower than the wire.
fn slow(retries: u64) -> Nic {
    let mut parameters = parameters(1);
    (parameters.transmit.fifo, parameters.transmit.retries) = (Some(48), retries);
    (parameters.transmit.chained, parameters.transmit.restart) = (micros(10), micros(70));
    parameters.dma.cycle = micros(2);
    new_nic(parameters)
}

/// Returns the times of the scheduled [`NicEvent::Ready`] events.
fn ready(actions: &[NicAction]) -> Vec<Tick> {
    let time = |action: &NicAction| match *action {
        NicAction::Later { at, event: NicEvent::Ready } => Some(at),
        _ => None,
    };
    actions.iter().filter_map(time).collect()
}

#[test]
fn queues_are_served_round_robin_a_frame_each() {
    let (mut nic, mut frames, mut actions) = (new_nic(parameters(3)), Frames::new(64), Vec::new());
    let mut queued = Vec::new();
    for queue in [0, 0, 0, 1, 1, 2] {
        let frame = frames.take();
        queued.push(frame);
        nic.transmit(
            Tick::ZERO,
            queue,
            TransmitFrame { frame, length: 60, is_last: true },
            &mut actions,
        );
    }
    let mut left = Vec::new();
    while !ready(&actions).is_empty() {
        actions.clear();
        nic.handle_event(Tick::ZERO, NicEvent::Ready, &mut actions);
        let [NicAction::Request { frame }] = actions[..] else { panic!("{actions:?}") };
        left.extend(queued.iter().position(|&known| known == frame));
        nic.handle_sending(Tick::ZERO, &mut actions);
        actions.clear();
        nic.handle_sent(Tick::ZERO, 60, false, &mut actions);
        nic.check();
    }
    assert_eq!(left, [0, 3, 5, 1, 4, 2]);
    let sent: Vec<u64> = nic.queues().map(|queue| queue.transmit_packets).collect();
    assert_eq!(sent, [3, 2, 1]);
}

#[test]
fn the_dead_time_follows_sent_and_received_frames() {
    let mut parameters = parameters(1);
    parameters.receive.deaf = micros(10);
    for (begins, received) in [(109, 0), (110, 1)] {
        let (mut nic, mut frames) = (new_nic(parameters.clone()), Frames::new(64));
        let mut actions = Vec::new();
        nic.handle_sent(at(100), 60, false, &mut actions);
        nic.handle_arriving(at(begins), &mut actions);
        nic.handle_arrived(at(160), 0, frames.take(), 60, true, &mut actions);
        let counted = nic.statistics();
        assert_eq!(
            (counted.receive_packets, counted.receive_fifo),
            (received, 1 - received),
            "at {begins} us"
        );
    }
}

#[test]
fn no_second_interrupt_before_the_driver_has_polled() {
    let mut parameters = parameters(1);
    parameters.interrupt = InterruptParameters { delay: micros(100), frames: 3 };
    let (mut nic, mut actions) = (new_nic(parameters), Vec::new());
    let moderated = NicEvent::Moderated { queue: 0 };
    let done = NicEvent::DescriptorDone { queue: 0 };
    nic.transmitter.expect_completions(0, 5);
    nic.handle_event(at(0), done, &mut actions);
    assert_eq!(actions, [NicAction::Later { at: at(100), event: moderated }]);
    actions.clear();
    nic.handle_event(at(100), moderated, &mut actions);
    assert_eq!(actions, [NicAction::Interrupt { queue: 0 }]);
    actions.clear();
    nic.handle_event(at(110), done, &mut actions);
    assert_eq!(actions, [], "the pending interrupt covers this one");
    assert_eq!([(); 2].map(|()| nic.poll_completion(0)), [Some(Completion::Transmitted); 2]);
    // Three more frames are completed, which is the limit for one interrupt. The NIC interrupts at
    // once, and the driver then reads all completions. The timer of 100 us, which the first of them
    // started, later finds nothing to report.
    for _ in 0..3 {
        nic.handle_event(at(200), done, &mut actions);
    }
    assert_eq!(
        actions,
        [NicAction::Later { at: at(300), event: moderated }, NicAction::Interrupt { queue: 0 }]
    );
    while nic.poll_completion(0).is_some() {}
    actions.clear();
    nic.handle_event(at(300), moderated, &mut actions);
    assert_eq!((&actions[..], nic.statistics().interrupts), (&[][..], 2));
}

/// Sends two frames. A FIFO underrun aborts the first. Returns the times at which the NIC is then
/// ready to send its next frame, and the counters.
fn aborted(retries: u64) -> (Vec<Tick>, NicStatistics) {
    let (mut nic, mut frames, mut actions) = (slow(retries), Frames::new(64), Vec::new());
    for _ in 0..2 {
        let frame = frames.take();
        nic.transmit(
            Tick::ZERO,
            0,
            TransmitFrame { frame, length: 1_514, is_last: true },
            &mut actions,
        );
    }
    nic.handle_sending(at(0), &mut actions);
    assert!(
        actions.iter().any(|action| matches!(action, NicAction::Truncate { cut: Some(_), .. }))
    );
    actions.clear();
    nic.handle_sent(at(1_000), 500, false, &mut actions);
    (ready(&actions), nic.statistics())
}

#[test]
fn an_aborted_frame_delays_the_next_by_the_restart_time() {
    for retries in [0, 1] {
        let (ready, counted) = aborted(retries);
        assert_eq!(ready, [at(1_070)], "the restart time, not the 10 us between chained frames");
        assert_eq!(
            (counted.transmit_errors, counted.transmit_fifo, counted.transmit_packets),
            (1, 1, 0)
        );
    }
}

#[test]
fn a_frame_abandoned_after_collisions_is_no_underrun() {
    let (mut nic, mut frames, mut actions) = (slow(0), Frames::new(64), Vec::new());
    for _ in 0..2 {
        let frame = frames.take();
        nic.transmit(
            Tick::ZERO,
            0,
            TransmitFrame { frame, length: 1_514, is_last: true },
            &mut actions,
        );
    }
    nic.handle_sending(at(0), &mut actions);
    nic.handle_collided(&mut actions);
    actions.clear();
    nic.handle_sent(at(1_000), 1_514, true, &mut actions);
    let counted = nic.statistics();
    assert_eq!((counted.transmit_errors, counted.transmit_fifo, counted.collisions), (1, 0, 1));
    assert_eq!(ready(&actions), [at(1_010)], "the next frame of the ring");
}

#[test]
fn the_turnaround_time_applies_only_after_a_received_frame() {
    let mut parameters = parameters(1);
    parameters.transmit.after_receive = micros(50);
    let (mut nic, mut frames, mut actions) = (new_nic(parameters), Frames::new(64), Vec::new());
    let [first, second, received] = [(); 3].map(|()| frames.take());
    nic.transmit(
        at(10),
        0,
        TransmitFrame { frame: first, length: 60, is_last: true },
        &mut actions,
    );
    actions.clear();
    nic.handle_event(at(10), NicEvent::Ready, &mut actions);
    assert_eq!(actions, [NicAction::Request { frame: first }]);
    nic.handle_sent(at(70), 60, false, &mut actions);
    nic.handle_arriving(at(80), &mut actions);
    nic.handle_arrived(at(140), 0, received, 60, true, &mut actions);
    nic.transmit(
        at(150),
        0,
        TransmitFrame { frame: second, length: 60, is_last: true },
        &mut actions,
    );
    actions.clear();
    nic.handle_event(at(150), NicEvent::Ready, &mut actions);
    assert_eq!(ready(&actions), [at(190)], "50 us after the received frame");
}
