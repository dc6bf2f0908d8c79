//! Tests of TIME-WAIT records. When the application has released a connection in TIME-WAIT, a small
//! record replaces it. The record must answer segments as the full connection would.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Connection, Disposition, Offload, State, TimeWaitRecord};
use linerate_testkit::Script;
use linerate_units::{Duration, Instant};
use linerate_wire::{Segment, TcpFlags, TcpOptions, Timestamps};
use proptest::prelude::*;

/// Returns a connection in TIME-WAIT that the application has released. It uses window scaling,
/// SACK and timestamps.
fn in_time_wait(config: &Config) -> Script {
    after_all(config, " wscale 7 sackOK ts 1000 0", None)
}

/// Returns a connection in TIME-WAIT that the application has released. `offered` are the options
/// of the peer's SYN-ACK. `receive_buffer` is the size of the receive buffer in bytes, or `None`
/// for the size of `config`.
fn after_all(config: &Config, offered: &str, receive_buffer: Option<usize>) -> Script {
    let mut host = Script::established(config, &format!("{SYN_ACK}{offered}"));
    if let Some(size) = receive_buffer {
        host.application(|connection, _| connection.set_receive_buffer(size));
    }
    host.write(100);
    host.expect("P. 1:101(100) ack 1");
    host.send(". 1:1(0) ack 101");
    host.application(Connection::close);
    host.expect("F. 101:101(0) ack 1");
    host.send(". 1:1(0) ack 102");
    host.send("F. 1:1(0) ack 102");
    assert_eq!(host.connection.state(), State::TimeWait);
    assert!(host.connection.time_wait_record().is_none(), "an acknowledgement is pending");
    host.expect(". 102:102(0) ack 2");
    host
}

fn kept(host: &Script) -> TimeWaitRecord {
    host.connection.time_wait_record().expect("TIME-WAIT is all that is left")
}

#[test]
fn a_record_is_small_and_ends_with_time_wait() {
    let host = in_time_wait(&Config::modern());
    let waiting = kept(&host);
    assert_eq!(waiting.deadline(), host.now + secs(60));
    assert!(size_of_val(&waiting) <= 80, "{} bytes", size_of_val(&waiting));
    waiting.look().check();
    let mut restored = waiting.wake(host.now);
    restored.driver().handle_timeout(waiting.deadline() - Duration::from_nanos(1));
    assert_eq!(restored.state(), State::TimeWait);
    restored.driver().handle_timeout(waiting.deadline());
    assert!(restored.is_released());
}

#[test]
fn an_open_or_unreleased_connection_has_no_record() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    assert!(host.connection.time_wait_record().is_none());
    host.application(Connection::shutdown_write);
    host.expect("F. 1:1(0) ack 1");
    host.send("F. 1:1(0) ack 2");
    host.expect(". 2:2(0) ack 2");
    assert_eq!(host.connection.state(), State::TimeWait);
    assert!(host.connection.time_wait_record().is_none(), "the application has not released it");
    let mut record = kept(&in_time_wait(&Config::modern()));
    let before = record.look();
    assert!(!host.connection.write_time_wait_record(&mut record));
    assert_eq!(record.look(), before, "the previous record is unchanged");
    host.application(Connection::close);
    assert!(host.connection.time_wait_record().is_some());
}

/// A received segment. `seq` and `ack` are relative to the numbers that the connection expects.
#[derive(Clone, Debug)]
struct Arriving {
    after: Duration,
    flags: TcpFlags,
    seq: i32,
    ack: i32,
    window: u16,
    payload: usize,
    /// TSval relative to TS.Recent, and TSecr relative to our clock; `None` without the option.
    timestamps: Option<(i32, i32)>,
}

fn arriving() -> impl Strategy<Value = Arriving> {
    let flags = prop::sample::select(vec![
        TcpFlags::ACK,
        TcpFlags::ACK,
        TcpFlags::FIN | TcpFlags::ACK,
        TcpFlags::PSH | TcpFlags::ACK,
        TcpFlags::SYN,
        TcpFlags::SYN | TcpFlags::ACK,
        TcpFlags::RST,
        TcpFlags::RST | TcpFlags::ACK,
        TcpFlags::FIN,
        TcpFlags::URG | TcpFlags::ACK,
        TcpFlags::empty(),
    ]);
    let near = || prop_oneof![4 => -3..4_i32, 1 => -70_000..70_000_i32, 1 => any::<i32>()];
    let timestamps = prop::option::weighted(0.8, (near(), near()));
    let after = (0..5_000_u64).prop_map(ms);
    (after, flags, near(), near(), any::<u16>(), prop_oneof![Just(0), 0..20_usize], timestamps)
        .prop_map(|(after, flags, seq, ack, window, payload, timestamps)| Arriving {
            after,
            flags,
            seq,
            ack,
            window,
            payload,
            timestamps,
        })
}

/// Passes the segment to the connection. Returns its disposition and the segments sent in reply.
fn answers(
    connection: &mut Connection,
    now: Instant,
    segment: &Segment<'_>,
) -> (Disposition, Vec<Vec<u8>>) {
    let mut frame = [0; 1_480];
    connection.driver().handle_timeout(now);
    let disposition = connection.driver().handle_segment(now, segment);
    let sent = std::iter::from_fn(|| {
        connection
            .driver()
            .poll_transmit(now, Offload::None, &mut frame)
            .map(|sent| frame[..sent.length].to_vec())
    });
    (disposition, sent.collect())
}

proptest! {
    #[test]
    fn a_connection_and_its_record_answer_alike(
        arrivals in prop::collection::vec(arriving(), 1..12),
        timestamps in any::<bool>(),
        selective_acks in any::<bool>(),
        time_wait_outlives_resets in any::<bool>(),
        user_timeout_option in any::<bool>(),
        offered in prop::sample::select(vec![
            " wscale 7 sackOK ts 1000 0",
            " sackOK ts 1000 0",
            " wscale 0",
            "",
        ]),
        receive_buffer in prop::option::of(1_000..200_000_usize),
    ) {
        let config = Config {
            timestamps,
            selective_acks,
            time_wait_outlives_resets,
            user_timeout_option,
            ..Config::modern()
        };
        let host = after_all(&config, offered, receive_buffer);
        let (mut whole, mut waiting, mut now) = (host.connection.clone(), kept(&host), host.now);
        // After each segment, the state of the connection is written into the existing `record`. At
        // first, this holds the state of a connection with another MSL. A field that is not written
        // would therefore be noticed.
        let mut record = kept(&in_time_wait(&Config { msl: secs(3), ..config }));
        let (peer, own) = (host.peer_number(2), host.number(102));
        let (received, clock) = (host.clock(), host.stamp_at(now));
        for arriving in arrivals {
            now += arriving.after;
            let mut options = [0; 40];
            let stamps = arriving.timestamps.map(|(value, echo)| Timestamps {
                value: received.wrapping_add_signed(value),
                echo: clock.wrapping_add_signed(echo),
            });
            let emitted = TcpOptions { timestamps: stamps, ..TcpOptions::default() };
            let length = emitted.emit(&mut options);
            let payload = [7; 20];
            let words = u16::try_from(5 + length / 4).expect("at most fifteen words");
            let segment = Segment {
                source_port: 1,
                destination_port: 2,
                seq: peer + arriving.seq.cast_unsigned(),
                ack: own + arriving.ack.cast_unsigned(),
                offset_and_flags: words << 12 | arriving.flags.bits(),
                window: arriving.window,
                urgent: 1,
                options: &options[..length],
                payload: &payload[..arriving.payload],
                joined: None,
            };
            // The segment goes to two copies of the connection. `restored` is restored from its
            // record and becomes a record again, as in a host. `whole` keeps its full form. Both
            // must give equal answers.
            let mut restored = waiting.wake(now);
            let expected = answers(&mut whole, now, &segment);
            prop_assert_eq!(&answers(&mut restored, now, &segment), &expected);
            restored.check();
            prop_assert_eq!(restored.state(), whole.state());
            if expected.0 == Disposition::OpenAgain || whole.state() == State::Closed {
                break;
            }
            prop_assert!(restored.write_time_wait_record(&mut record));
            let kept = whole.time_wait_record().expect("no acknowledgement is pending");
            prop_assert_eq!(record.deadline(), kept.deadline());
            let rewritten = restored.time_wait_record().expect("no acknowledgement is pending");
            prop_assert_eq!(record.look(), rewritten.look());
            waiting = record.clone();
        }
    }
}
