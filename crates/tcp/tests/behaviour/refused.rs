//! Tests that a refused segment leaves the connection unchanged (RFC 5961 §5.2). The segments carry
//! everything that could change it: a future timestamp, another window, options, congestion marks
//! and data.
//!
//! The function `refuse` compares the whole connection before and after each refused segment. Only
//! counters, the budget of challenge ACKs and the pending answer may differ.

use crate::{ms, secs};
use linerate_tcp::{Config, Connection, Disposition, EcnRule, KeepAlive, Offload, Refusal, State};
use linerate_testkit::{Connections, End, Network, Script};
use linerate_units::Duration;
use linerate_wire::{
    Ecn, EcnCounts, EcnOrder, SackBlock, Segment, SeqNum, TcpFlags, TcpHeader, TcpOptions,
    Timestamps, UserTimeout,
};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// The SYN-ACK of a peer that accepts every requested option.
const SYN_ACK: &str = "SE. 0:0(0) ack 1 win 65535 mss 1460 wscale 7 sackOK ts 1000 0";

/// Returns a configuration with all options enabled. A segment can then change as much state as
/// possible, if it is wrongly processed.
fn rules(accurate: bool) -> Config {
    Config {
        ecn: EcnRule::Request,
        accurate_ecn: if accurate { EcnRule::Request } else { EcnRule::Off },
        user_timeout_option: true,
        ..Config::modern()
    }
}

fn established(config: &Config) -> Script {
    let is_accurate = config.accurate_ecn != EcnRule::Off;
    let mut host = Script::connect(config);
    host.take_sent();
    host.send(&if is_accurate { SYN_ACK.replace("SE.", "SW.") } else { SYN_ACK.to_owned() });
    host.take_sent();
    host.events();
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(host.connection.information().accurate_ecn.is_some(), is_accurate);
    host
}

/// Returns a connection in `state`.
fn in_state(state: State, config: &Config) -> Script {
    let syn = if config.accurate_ecn == EcnRule::Off { "SEW" } else { "SEWA" };
    let syn = format!("{syn} 0:0(0) win 65535 mss 1460 wscale 7 sackOK ts 1000 0");
    let close = |host: &mut Script| {
        host.application(Connection::shutdown_write);
        host.take_sent();
    };
    let mut host = match state {
        State::SynSent => Script::connect(config),
        State::SynReceived => Script::accept(config, &syn),
        _ => established(config),
    };
    host.take_sent();
    match state {
        State::SynSent | State::SynReceived => {}
        State::Established => {
            // The connection now has unacknowledged data, unread data, and out-of-order data behind
            // a hole. A refused segment must not change any of these.
            host.write(3_000);
            host.send("P. 1:101(100) ack 1");
            host.send("P. 301:401(100) ack 1");
        }
        State::FinWait1 => close(&mut host),
        State::FinWait2 => {
            close(&mut host);
            host.send(". 1:1(0) ack 2");
        }
        State::CloseWait => host.send("F. 1:1(0) ack 1"),
        State::Closing => {
            close(&mut host);
            host.send("F. 1:1(0) ack 1");
        }
        State::LastAck => {
            host.send("F. 1:1(0) ack 1");
            close(&mut host);
        }
        State::TimeWait => {
            close(&mut host);
            host.send("F. 1:1(0) ack 2");
        }
        State::Closed => host.application(Connection::abort),
    }
    host.take_sent();
    assert_eq!(host.connection.state(), state);
    host
}

const STATES: [State; 10] = [
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
    State::Closed,
];

/// Returns the sequence number that a connection in `state` expects next, relative to the peer's
/// initial sequence number.
const fn next(state: State) -> u32 {
    match state {
        State::Established => 101,
        State::CloseWait | State::Closing | State::LastAck | State::TimeWait => 2,
        _ => 1,
    }
}

/// The window and options of the refused segments. They must have no effect: if the timestamp were
/// recorded, for example, PAWS would reject the peer's later segments.
const POISON: &str = "win 1 ts 1000000000 5 uto 7s sack 1-2";

/// Returns segments that a connection in `state` refuses, with the reason for each refusal. `state`
/// must be one in which the peer's SYN has been received.
fn refused(state: State) -> Vec<(String, Refusal)> {
    let first = next(state);
    let (end, beyond) = (first + 100, first + 100_000_000);
    // This acknowledgement number is too old: it precedes SND.UNA by more than the largest window
    // that the peer has offered (RFC 5961 §5.2).
    let ancient = 1_u32.wrapping_sub(65_535 << 7).wrapping_sub(2);
    let is_over = state == State::TimeWait;
    let reset = |why| if is_over { Refusal::ResetInTimeWait } else { why };
    vec![
        // RFC 5961 §5.2: the next four segments have an unacceptable acknowledgement number. They
        // begin at the expected sequence number or before it. All but one carry data.
        (format!("PEW. {}:{end}(101) ack 500000000 {POISON}", first - 1), Refusal::BadAck),
        (format!("PUEW. {first}:{end}(100) ack 500000000 urg 50 {POISON}"), Refusal::BadAck),
        (format!("EW. {first}:{first}(0) ack 500000000 {POISON}"), Refusal::BadAck),
        (format!("FPEW. {first}:{end}(100) ack {ancient} {POISON}"), Refusal::BadAck),
        (format!("PEW {first}:{end}(100) {POISON}"), Refusal::NoAck),
        (format!("FPEW. {first}:{end}(100) ack 1 win 1 ts 999 5 uto 7s"), Refusal::OldTimestamp),
        (format!("FPEW. {first}:{end}(100) ack 1 win 1 uto 7s bare"), Refusal::OldTimestamp),
        (format!("FPEW. {beyond}:{}(100) ack 1 {POISON}", beyond + 100), Refusal::OutsideWindow),
        // A segment before the window counts as a duplicate only if its sequence number and its
        // acknowledgement number are plausible. The next segment has an implausible sequence
        // number, and the one after it an implausible acknowledgement number.
        (format!("FPEW. 2500000000:2500000100(100) ack 1 {POISON}"), Refusal::OutsideWindow),
        (format!("PEW. {}:{first}(1) ack 500000000 {POISON}", first - 1), Refusal::OutsideWindow),
        (format!("SEW. {0}:{0}(0) ack 1 {POISON}", first + 9), Refusal::Challenged),
        (format!("R. {0}:{0}(0) ack 1 {POISON}", first + 9), reset(Refusal::Challenged)),
        (format!("R. {beyond}:{beyond}(0) ack 1 {POISON}"), reset(Refusal::OutsideWindow)),
    ]
}

/// Passes a marked segment to the connection. Checks that it is refused for the reason `why` and
/// has no effect.
#[track_caller]
fn refuse(host: &mut Script, text: &str, why: Refusal) {
    host.take_sent();
    let before = host.connection.clone();
    let found = host.judge_bearing(Ecn::Ce, text);
    assert_eq!(found, Disposition::Refused(why), "{:?}: {text}", before.state());
    host.connection.assert_unchanged_by_refusal(&before);
}

#[test]
fn in_every_state_a_refused_segment_changes_nothing() {
    for accurate in [false, true] {
        for state in STATES {
            let mut host = in_state(state, &rules(accurate));
            let texts = match state {
                State::SynSent => vec![
                    (format!("S. 0:0(0) ack 2 {POISON}"), Refusal::BadAck),
                    (format!("R. 0:0(0) ack 2 {POISON}"), Refusal::BadAck),
                    (format!("R 0:0(0) {POISON}"), Refusal::NoAck),
                    (format!("FPEW. 1:101(100) ack 1 {POISON}"), Refusal::NoSyn),
                ],
                State::Closed => {
                    vec![(format!("FPEW. 1:101(100) ack 1 {POISON}"), Refusal::Closed)]
                }
                _ => refused(state),
            };
            for (text, why) in texts {
                refuse(&mut host, &text, why);
            }
            if state.takes_data() {
                let (first, ack) = (next(state), if state == State::FinWait2 { 2 } else { 1 });
                let data = format!("P. {first}:{}(10) ack {ack}", first + 10);
                assert_eq!(host.judge(&data), Disposition::Accepted, "{state:?}");
            }
        }
    }
}

/// A refused segment changes nothing, and causes at most one answer. The answer is an
/// acknowledgement, and only one challenge ACK is sent per interval. In SYN-RECEIVED, the answer is
/// a reset.
#[test]
fn a_refused_segment_only_causes_its_answer() {
    let mut host = in_state(State::Established, &rules(false));
    refuse(&mut host, "P. 101:201(100) ack 500000000", Refusal::BadAck);
    host.expect(". 3001:3001(0) ack 101 sack 301-401");
    refuse(&mut host, "S. 110:110(0) ack 1", Refusal::Challenged);
    host.expect(". 3001:3001(0) ack 101 sack 301-401");
    refuse(&mut host, "S. 110:110(0) ack 1", Refusal::Challenged);
    host.expect_nothing();
    let mut host = in_state(State::SynReceived, &rules(false));
    refuse(&mut host, "P. 1:101(100) ack 700", Refusal::BadAck);
    host.expect("R 700:700(0)");
}

/// The fields of a forged segment.
#[derive(Clone, Debug)]
struct Forgery {
    flags: TcpFlags,
    /// The sequence number of the segment, relative to the number that the connection expects.
    seq: i32,
    ack: i32,
    window: u16,
    urgent: u16,
    payload: usize,
    /// The TSval and the TSecr, each as a difference from a plausible value; `None` if the segment
    /// has no timestamps.
    timestamps: Option<(i32, i32)>,
    options: [bool; 3],
    ecn: Ecn,
    after: Duration,
}

fn forgery() -> impl Strategy<Value = Forgery> {
    let (ack, fin, syn, rst) = (TcpFlags::ACK, TcpFlags::FIN, TcpFlags::SYN, TcpFlags::RST);
    let kind =
        prop::sample::select(vec![ack, ack, ack, ack | fin, ack | syn, syn, rst, ack | rst, fin]);
    let others = prop::sample::select(vec![0_u16, 0, 8, 0x20, 0xc0, 0x1c0, 0x1e8]);
    let flags = (kind, others).prop_map(|(kind, others)| kind | TcpFlags::from_bits_retain(others));
    let near = || {
        prop_oneof![
            4 => -3..4_i32,
            2 => -200..200_i32,
            2 => -70_000..70_000_i32,
            1 => any::<i32>(),
        ]
    };
    let payload = prop_oneof![Just(0_usize), 1..20_usize, Just(1_400)];
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let timestamps = prop::option::weighted(0.8, (near(), near()));
    let rest = (any::<u16>(), any::<u16>(), payload, any::<[bool; 3]>(), ecn, 0..2_000_u64);
    (flags, near(), near(), timestamps, rest).prop_map(
        |(flags, seq, ack, timestamps, (window, urgent, payload, options, ecn, after))| Forgery {
            flags,
            seq,
            ack,
            window,
            urgent,
            payload,
            timestamps,
            options,
            ecn,
            after: ms(after),
        },
    )
}

impl Forgery {
    /// Returns the options of this segment, with values near those of `host`.
    fn options(&self, host: &Script) -> TcpOptions {
        let [timeout, counts, sack] = self.options;
        let left = host.number(1);
        let mut options = TcpOptions {
            timestamps: self.timestamps.map(|(value, echo)| Timestamps {
                value: host.clock().wrapping_add_signed(value),
                echo: host.stamp_at(host.now).wrapping_add_signed(echo),
            }),
            user_timeout: timeout.then_some(UserTimeout { minutes: false, count: 7 }),
            ecn: counts.then(|| EcnCounts::new(EcnOrder::Zero, 100, 200, 300).cut_to(2)),
            ..TcpOptions::default()
        };
        if sack {
            options.sack.push(SackBlock { left, right: left + 2_000 });
        }
        options
    }
}

proptest! {
    /// A segment that the connection refuses has no effect. This holds in every state, and for
    /// random values of all fields of the segment.
    #[test]
    fn a_refused_segment_leaves_the_connection_as_it_was(
        state in prop::sample::select(STATES.to_vec()),
        accurate in any::<bool>(),
        switches in any::<[bool; 3]>(),
        forgeries in prop::collection::vec(forgery(), 1..20),
    ) {
        let [timestamps, selective_acks, header_prediction] = switches;
        let config = Config { timestamps, selective_acks, ..rules(accurate) };
        let mut host = in_state(state, &config);
        host.connection.set_header_prediction(header_prediction);
        let (peer, own) = (host.peer_number(next(state)), host.number(1));
        let (mut now, payload) = (host.now, [7; 1_400]);
        for forgery in forgeries {
            now += forgery.after;
            host.connection.driver().handle_timeout(now);
            let mut options = [0; 40];
            let length = forgery.options(&host).emit(&mut options);
            let words = u16::try_from(5 + length / 4).expect("at most fifteen words");
            let segment = Segment {
                source_port: 1,
                destination_port: 2,
                seq: peer + forgery.seq.cast_unsigned(),
                ack: own + forgery.ack.cast_unsigned(),
                offset_and_flags: words << 12 | forgery.flags.bits(),
                window: forgery.window,
                urgent: forgery.urgent,
                options: &options[..length],
                payload: &payload[..forgery.payload],
                joined: None,
            };
            let before = host.connection.clone();
            let driver = host.connection.driver();
            let disposition = driver.handle_segment_with(now, &segment, forgery.ecn, None);
            host.connection.check();
            if matches!(disposition, Disposition::Refused(_) | Disposition::OpenAgain) {
                host.connection.assert_unchanged_by_refusal(&before);
            }
            let mut frame = [0; 1_480];
            let connection = &mut host.connection;
            while connection.driver().poll_transmit(now, Offload::None, &mut frame).is_some() {}
        }
    }
}

/// A blind attacker sends 2^16 segments of 1,400 bytes, and one of them contains the next expected
/// sequence number. It is refused because of its acknowledgement number, so its timestamp must not
/// be recorded. Otherwise PAWS would drop the peer's segments until the connection times out.
#[test]
fn a_blindly_injected_timestamp_does_not_block_the_peer() {
    let config = Config::modern();
    let mut pair = Connections::new(&config, &config, Network::clean(ms(10)), 7);
    let seen = Rc::new(Cell::new(None));
    let sent = Rc::clone(&seen);
    pair.set_filter(move |_, from, segment| {
        if from == End::Client && !segment.payload.is_empty() {
            let stamp = segment.timestamps().expect("both use timestamps").value;
            sent.set(Some((segment.seq + segment.sequence_length(), segment.ack, stamp)));
        }
        None
    });
    let mut pair = pair.established();
    let mut received = 0;
    for guess in 1..=60 {
        let now = pair.now;
        assert_eq!(pair.client.write(now, &[7; 10_000]), Ok(10_000));
        pair.pass_time(ms(100));
        received += pair.read_all(End::Server).expect("the connection is open").len();
        let (next, ack, stamp) = seen.get().expect("the client has sent something");
        // The guessed acknowledgement number differs by at least 64 MiB from the numbers of all
        // data that was sent. So the segment must be refused.
        let segment = injected(next - 700, ack + (guess << 26), stamp.wrapping_add(1_000_000_000));
        pair.inject(End::Server, &segment);
    }
    assert_eq!(received, 600_000);
    assert_eq!(pair.server().statistics().old_timestamps, 0);
    assert_eq!(pair.client.statistics().retransmitted_segments, 0);
}

/// Returns a segment with 1,400 bytes of data and the timestamp `stamp`.
fn injected(seq: SeqNum, ack: SeqNum, stamp: u32) -> Vec<u8> {
    let header = TcpHeader { seq, ack, flags: TcpFlags::ACK, window: 1, ..TcpHeader::default() };
    let options = TcpOptions {
        timestamps: Some(Timestamps { value: stamp, echo: 1 }),
        ..TcpOptions::default()
    };
    let mut bytes = vec![0xee; TcpHeader::MAX_LENGTH];
    let length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
    header.emit(length, &mut bytes);
    bytes.resize(TcpHeader::LENGTH + length, 0);
    bytes.resize(TcpHeader::LENGTH + length + 1_400, 0xee);
    bytes
}

/// Keep-alive detects that the peer is gone because nothing arrives from it. Forged segments that
/// are refused must not postpone this.
#[test]
fn a_refused_segment_does_not_postpone_keep_alive_probes() {
    let keep_alive = KeepAlive { idle: secs(10), interval: secs(1), probes: 3 };
    let mut host = established(&Config { keep_alive: Some(keep_alive), ..rules(false) });
    host.pass_time(secs(9));
    refuse(&mut host, "P. 1:101(100) ack 500000000", Refusal::BadAck);
    host.take_sent();
    host.pass_time(secs(1));
    assert_eq!(host.connection.statistics().keep_alive_probes, 1);
}
