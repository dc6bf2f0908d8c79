//! Tests of closed windows (RFC 9293 §3.8.6.1) and silly-window avoidance (§3.8.6.2): no transfer
//! stalls, and no tiny segments are sent.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Connection, Error, IcmpReport, State, TimeLimits};
use linerate_testkit::{Connections, End, Fate, Network, Script, pattern};
use linerate_wire::TcpFlags;
use std::cell::Cell;
use std::rc::Rc;

/// Returns a connection whose peer has received 1,000 bytes and closed its window. The application
/// has written 4,000 further bytes, which cannot be sent.
fn closed() -> Script {
    closed_to(&Config::modern(), "")
}

/// The TCP options that the peer offers. Each test runs twice: without options, and with the
/// options that output prediction requires. Output prediction is the fast path for sent segments.
const OFFERS: [&str; 2] = ["", " sackOK ts 100 1"];

/// Returns a connection as [`closed`] does, with the configuration `config` and the options that
/// the peer `offers`.
fn closed_to(config: &Config, offers: &str) -> Script {
    let mut host =
        Script::established(config, &format!("S. 0:0(0) ack 1 win 1000 mss 1460{offers}"));
    host.write(5_000);
    host.expect(". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 1001 win 0");
    host.expect_nothing();
    host
}

#[test]
fn probes_back_off_to_the_maximum_and_never_give_up_while_they_are_answered() {
    let mut host = closed();
    let start = host.now;
    let mut interval = ms(200);
    while host.now.since(start) < secs(10 * 3_600) {
        host.expect_after(interval, ". 1001:1002(1) ack 1");
        host.send(". 1:1(0) ack 1001 win 0");
        interval = (interval * 2).min(secs(60));
    }
    assert_eq!(host.connection.state(), State::Established);
    assert_eq!(host.connection.statistics().retransmission_timeouts, 0);
    host.send(". 1:1(0) ack 1001 win 1000");
    host.expect(". 1001:2001(1000) ack 1");
    host.send(". 1:1(0) ack 2001 win 65535");
    host.expect(". 2001:3461(1460) ack 1");
    host.expect(". 3461:4921(1460) ack 1");
}

#[test]
fn unanswered_window_probes_end_the_connection() {
    let mut host = closed();
    let start = host.now;
    while host.connection.state() != State::Closed {
        host.pass_time(secs(10));
        assert!(
            host.now.since(start) < secs(1_000),
            "not given up after {}",
            host.now.since(start)
        );
    }
    assert!(host.now.since(start) >= secs(900), "R2 is fifteen minutes");
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
    assert!(
        host.take_sent().iter().all(|sent| !sent.says.flags.contains(TcpFlags::RST)),
        "no reset is sent to a peer that has vanished"
    );
}

/// RFC 1122 §4.2.3.9: window probes are answered only by ICMP errors. When the connection is given
/// up, this error is reported to the application as the cause.
#[test]
fn probes_that_the_network_cannot_deliver_end_the_connection_as_unreachable() {
    let mut host = closed_to(&Config { give_up_after: secs(20), ..Config::modern() }, "");
    host.pass_time(secs(1));
    let probe = host.take_one();
    let quoted = host.number(probe.says.seq);
    host.application(|connection, now| {
        connection.driver().handle_icmp(now, IcmpReport::SoftError { quoted });
    });
    host.pass_time(secs(60));
    assert_eq!(host.connection.error(), Some(Error::Unreachable));
}

#[test]
fn a_probe_that_the_peer_takes_is_progress() {
    for offers in OFFERS {
        let mut host = closed_to(&Config::modern(), offers);
        host.expect_after(ms(200), ". 1001:1002(1) ack 1");
        host.send(". 1:1(0) ack 1002 win 0");
        host.expect_after(ms(400), ". 1002:1003(1) ack 1");
        host.send(". 1:1(0) ack 1003 win 1000");
        host.expect(". 1003:2003(1000) ack 1");
    }
}

#[test]
fn a_probe_in_flight_does_not_hinder_what_follows() {
    for offers in OFFERS {
        let mut host = closed_to(&Config::modern(), offers);
        host.expect_after(ms(200), ". 1001:1002(1) ack 1");
        host.send(". 1:1(0) ack 1001 win 1000");
        host.expect(". 1001:2001(1000) ack 1");
    }
}

/// RFC 9293 §3.8.6.1: the interval between window probes doubles while the window is closed. If the
/// window opens and closes again, the interval starts at its initial value.
#[test]
fn a_window_that_closes_again_is_probed_as_soon_as_the_first_one() {
    for offers in OFFERS {
        let mut host = closed_to(&Config::modern(), offers);
        host.expect_after(ms(200), ". 1001:1002(1) ack 1");
        host.expect_after(ms(400), ". 1001:1002(1) ack 1");
        assert_eq!(host.connection.information().consecutive_probes, 2);
        host.send(". 1:1(0) ack 1001 win 1000");
        host.expect(". 1001:2001(1000) ack 1");
        assert_eq!(host.connection.information().consecutive_probes, 0);
        host.send(". 1:1(0) ack 2001 win 0");
        host.expect_after(ms(200), ". 2001:2002(1) ack 1");
    }
}

/// A window probe has carried the last byte that was written, and then a small window opens. Data
/// that is written later must not be sent at once, as if it were a probe. It waits for the timer,
/// as silly-window avoidance requires.
#[test]
fn after_a_probe_of_the_last_byte_later_data_is_not_sent_as_a_probe() {
    for offers in OFFERS {
        let mut host = Script::established(
            &Config::modern(),
            &format!("S. 0:0(0) ack 1 win 1000 mss 1460{offers}"),
        );
        host.write(1_001);
        host.expect(". 1:1001(1000) ack 1");
        host.send(". 1:1(0) ack 1001 win 0");
        host.expect_after(ms(200), "P. 1001:1002(1) ack 1");
        host.send(". 1:1(0) ack 1002 win 100");
        host.expect_silence(secs(10));
        host.write(1_000);
        host.expect_nothing();
        host.expect_after(ms(400), ". 1002:1102(100) ack 1");
    }
}

/// RFC 9293 §3.8.6.1: the peer's closed window is probed even while the peer sends data.
#[test]
fn data_of_the_peer_does_not_postpone_the_window_probe() {
    let mut host = closed();
    for start in (1..=901).step_by(100) {
        host.pass_time(ms(100));
        host.send(&format!("P. {start}:{}(100) ack 1001 win 0", start + 100));
    }
    // An acknowledgement of the peer's data must carry a sequence number inside the peer's window,
    // or the peer would discard it. The number after the byte of a window probe is outside.
    for sent in host.take_sent().iter().filter(|sent| sent.says.length == 0) {
        assert_eq!(sent.says.seq, 1_001, "{}", sent.says);
    }
    assert!(host.connection.statistics().window_probes >= 2, "after a second");
}

/// The first window probe is sent after RTO, or after the configured minimum of the persist timer
/// if that is longer. Here it is longer.
#[test]
fn the_first_probe_waits_as_long_as_was_chosen() {
    let mut host = closed_to(
        &Config { persist: TimeLimits { min: secs(5), max: secs(60) }, ..Config::modern() },
        "",
    );
    host.expect_after(secs(5), ". 1001:1002(1) ack 1");
    host.expect_after(secs(5), ". 1001:1002(1) ack 1");
}

/// RFC 9293 §3.8.6.2.1: silly-window avoidance of the sender. The peer's window opens by single
/// bytes. Nothing is sent until one of three conditions holds: the window has room for a segment,
/// it reaches half of the largest window ever offered, or a timer expires.
#[test]
fn a_window_that_opens_by_single_bytes_gets_no_tiny_segments() {
    for probed in [false, true] {
        let mut host = closed();
        if probed {
            host.expect_after(ms(200), ". 1001:1002(1) ack 1");
        }
        for window in 1..500 {
            host.send(&format!(". 1:1(0) ack 1001 win {window}"));
            host.expect_nothing();
        }
        host.send(". 1:1(0) ack 1001 win 500");
        host.expect(". 1001:1501(500) ack 1");
    }
}

#[test]
fn a_small_window_that_stays_is_used_after_a_while() {
    let mut host = closed();
    host.send(". 1:1(0) ack 1001 win 100");
    host.expect_after(ms(200), ". 1001:1101(100) ack 1");
    let statistics = host.connection.statistics();
    assert_eq!((statistics.small_window_timeouts, statistics.window_probes), (1, 0));
}

/// RFC 5681 §3.1: the first timeout of a segment reduces ssthresh. Here this is a short segment,
/// which the persist timer has sent because the peer's window was too small for a full one.
#[test]
fn the_loss_of_a_segment_in_a_small_window_reduces_the_threshold() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 1000 mss 1000");
    host.write(2_000);
    host.expect(". 1:1001(1000) ack 1");
    host.send(". 1:1(0) ack 1001 win 100");
    host.expect_after(ms(200), ". 1001:1101(100) ack 1");
    assert!(host.connection.information().slow_start_threshold > 1_000_000);
    while host.connection.statistics().retransmission_timeouts == 0 {
        host.pass_time(ms(100));
        host.take_sent();
    }
    assert_eq!(host.connection.information().slow_start_threshold, 2_000);
}

/// Silly-window avoidance of the receiver: after the window was closed, it stays closed until the
/// buffer has room for a segment, or half of the buffer is free.
#[test]
fn reads_of_single_bytes_offer_no_silly_window() {
    for (buffer, worth) in [(2_000, 1_000), (8_000, 1_460)] {
        let mut host = Script::established(
            &Config { receive_buffer: buffer.into(), ..Config::modern() },
            SYN_ACK,
        );
        let mut filled = 0;
        while filled < buffer {
            let length = 1_460.min(buffer - filled);
            host.send(&format!(". {}:{}({length}) ack 1", filled + 1, filled + 1 + length));
            filled += length;
        }
        let end = filled + 1;
        let last = host.take_sent().pop().unwrap();
        assert_eq!((last.says.ack, last.says.window), (u32::try_from(end).ok(), Some(0)));
        for _ in 0..worth - 1 {
            host.read(1);
            host.expect_nothing();
        }
        // The next read frees the last byte that is needed to open the window. A window probe that
        // arrives before this read is still answered with a closed window.
        host.send(&format!(". {end}:{}(1) ack 1", end + 1));
        host.expect(&format!(". 1:1(0) ack {end} win 0"));
        host.read(1);
        host.expect(&format!(". 1:1(0) ack {end} win {worth}"));
    }
}

#[test]
fn a_probe_is_answered_and_its_byte_taken_once_there_is_room() {
    let mut host =
        Script::established(&Config { receive_buffer: 1_000.into(), ..Config::modern() }, SYN_ACK);
    host.send(". 1:1001(1000) ack 1");
    host.expect(". 1:1(0) ack 1001 win 0");
    for _ in 0..3 {
        host.send(". 1001:1002(1) ack 1");
        host.expect(". 1:1(0) ack 1001 win 0");
    }
    host.read(1_000);
    host.expect(". 1:1(0) ack 1001 win 1000");
    host.send(". 1001:1002(1) ack 1");
    host.expect(". 1:1(0) ack 1002");
    host.read(1);
}

#[test]
fn an_acknowledgement_counts_although_our_window_is_closed() {
    let mut host =
        Script::established(&Config { receive_buffer: 1_000.into(), ..Config::modern() }, SYN_ACK);
    host.send(". 1:1001(1000) ack 1");
    host.take_sent();
    host.write(100);
    host.expect("P. 1:101(100) ack 1001 win 0");
    host.send(". 1001:1001(0) ack 101");
    assert_eq!(host.connection.unacknowledged_bytes(), 0);
    host.send("F. 1001:1001(0) ack 101");
    assert_eq!(host.connection.state(), State::CloseWait);
}

/// RFC 9293 §3.8.6: a peer should not shrink its window, but a sender must cope with a peer that
/// does.
#[test]
fn a_shrunk_window_is_handled() {
    let mut host = Script::established(&Config::modern(), "S. 0:0(0) ack 1 win 3000 mss 1000");
    host.write(5_000);
    for start in [1, 1_001, 2_001] {
        host.expect(&format!(". {start}:{}(1000) ack 1", start + 1_000));
    }
    host.send(". 1:1(0) ack 1001 win 0");
    host.expect_nothing();
    host.pass_time(secs(30));
    for sent in host.take_sent() {
        assert_eq!((sent.says.seq, sent.says.length), (1_001, 1), "{}", sent.says);
    }
    host.send(". 1:1(0) ack 1001 win 4000");
    host.expect(". 1001:2001(1000) ack 1");
}

#[test]
fn the_fin_follows_data_that_waits_for_a_window() {
    let mut host = closed();
    host.application(Connection::shutdown_write);
    host.expect_nothing();
    host.expect_after(ms(200), ". 1001:1002(1) ack 1");
    host.send(". 1:1(0) ack 1001 win 5000");
    host.expect(". 1001:2461(1460) ack 1");
    host.expect(". 2461:3921(1460) ack 1");
    host.expect("FP. 3921:5001(1080) ack 1");
}

#[test]
fn a_closed_window_does_not_keep_a_released_connection() {
    let mut host = closed();
    host.application(Connection::close);
    let start = host.now;
    while host.connection.state() != State::Closed {
        host.pass_time(secs(1));
        for sent in host.take_sent() {
            if sent.says.length > 0 {
                host.send(". 1:1(0) ack 1001 win 0");
            }
        }
        assert!(host.now.since(start) < secs(200), "a released connection is kept for ever");
    }
    assert!(host.now.since(start) >= secs(60));
}

const BYTES: usize = 200_000;

/// Sends `BYTES` bytes to a server that reads only while `reads` returns true.
fn transfer(pair: &mut Connections, mut reads: impl FnMut(&Connections) -> bool) {
    let (mut written, mut read) = (0, 0);
    pair.run_until("every byte is read", |pair| {
        let now = pair.now;
        let part: Vec<u8> = (written..BYTES.min(written + 8_192)).map(pattern).collect();
        written += pair.client.write(now, &part).expect("the connection is open");
        if reads(pair) {
            let data = pair.read_all(End::Server).expect("the connection is open");
            assert!(data.iter().copied().eq((read..read + data.len()).map(pattern)));
            read += data.len();
        }
        read == BYTES
    });
}

fn pair() -> Connections {
    let config = Config { receive_buffer: 20_000.into(), ..Config::modern() };
    Connections::new(&config, &config, Network::clean(ms(5)), 1).established()
}

#[test]
fn a_reader_that_stops_for_a_minute_gets_everything_without_a_timeout() {
    let mut pair = pair();
    let resumes = pair.now + secs(60);
    // The server reads again from the time `resumes`. Until then, its window closes, and is only
    // probed.
    transfer(&mut pair, |pair| pair.now >= resumes);
    assert!(pair.now >= resumes);
    let client = pair.client.statistics();
    assert!(client.window_probes >= 5, "{client:?}");
    assert_eq!((client.retransmission_timeouts, client.fast_retransmissions), (0, 0));
}

#[test]
fn a_lost_window_update_is_found_by_the_next_probe() {
    let mut pair = pair();
    let lost = Rc::new(Cell::new(0));
    let losing = Rc::clone(&lost);
    let mut last = None;
    pair.set_filter(move |_, from, segment| {
        let opens = from == End::Server && last == Some(0) && segment.window > 0;
        if from == End::Server {
            last = Some(segment.window);
        }
        losing.set(losing.get() + u32::from(opens));
        (opens && losing.get() == 1).then_some(Fate::Lose)
    });
    let (mut open, mut opened) = (false, pair.now);
    transfer(&mut pair, |pair| {
        if !open && pair.client.information().send_window == 0 {
            (open, opened) = (true, pair.now);
        }
        open
    });
    assert!(lost.get() >= 1, "no update was lost");
    assert!(pair.client.statistics().window_probes >= 1);
    assert!(pair.now < opened + secs(2), "the probe came late: {}", pair.now.since(opened));
}
