//! Tests of delayed acknowledgements (RFC 9293 §3.8.6.3), by the rule of present-day TCPs, and by
//! those of 4.3BSD-Tahoe (1988) and 4.3BSD-Reno (1990).

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{AckRule, Config, Connection, Profile};
use linerate_testkit::{Connections, End, Network, Script};

/// Opens a connection that delays acknowledgements by the rule of present-day TCPs. Unlike in the
/// default configuration, this includes the first segments.
fn modern() -> Script {
    let config = Config { acks: AckRule::Modern { quick: 0 }, ..Config::modern() };
    Script::established(&config, SYN_ACK)
}

fn bsd(profile: Profile, receive_buffer: usize) -> Script {
    Script::established(
        &Config { receive_buffer: receive_buffer.into(), ..profile.config() },
        SYN_ACK,
    )
}

#[test]
fn one_segment_waits_and_the_second_does_not() {
    let mut host = modern();
    host.send(". 1:1461(1460) ack 1");
    host.expect_nothing();
    host.send(". 1461:2921(1460) ack 1");
    host.expect(". 1:1(0) ack 2921");
    host.send(". 2921:4381(1460) ack 1");
    host.expect_after(ms(40), ". 1:1(0) ack 4381");
    assert_eq!(host.connection.statistics().delayed_ack_timeouts, 1);
    host.expect_silence(secs(60));
}

/// Opens a connection that acknowledges every second segment, even if more arrive in a batch. It
/// has a receive window of 64 KiB, and the peer offers `options`.
fn in_pairs(options: &str) -> Script {
    let acks = AckRule::Modern { quick: 0 };
    let config =
        Config { acks, stretch_acks: false, receive_buffer: (1 << 16).into(), ..Config::modern() };
    Script::established(&config, &format!("{SYN_ACK} wscale 7 {options}"))
}

/// Delivers a batch of full-sized segments, given by their indices in the peer's stream. The
/// connection sends nothing before it has processed the whole batch.
fn come_together(host: &mut Script, numbers: impl Iterator<Item = u32>) {
    let texts = numbers
        .map(|number| format!(". {}:{}(1460) ack 1", number * 1_460 + 1, number * 1_460 + 1_461));
    let texts: Vec<String> = texts.collect();
    host.send_together(&texts.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn data_received_together_is_acknowledged_once_or_per_two_segments() {
    for options in ["sackOK ts 9 0", "sackOK", "ts 9 0", ""] {
        for (count, told) in [(2, &[2][..]), (3, &[2, 3]), (7, &[2, 4, 6, 7]), (8, &[2, 4, 6, 8])] {
            let mut host = in_pairs(options);
            come_together(&mut host, 0..count);
            for segments in told {
                let sent = host.expect(&format!(". 1:1(0) ack {}", segments * 1_460 + 1));
                let edge = segments * 1_460 + (u32::from(sent.says.window.unwrap()) << 1);
                assert!((65_534..=65_536).contains(&edge), "all offer the same window: {edge}");
            }
            host.expect_silence(ms(39));
            assert_eq!(host.connection.statistics().pure_acks_sent, told.len() as u64 + 1);

            let mut host = modern();
            come_together(&mut host, 0..count);
            host.expect(&format!(". 1:1(0) ack {}", count * 1_460 + 1));
            host.expect_nothing();
        }
    }
}

/// A connection that has sent its FIN still receives data. It acknowledges every second segment, as
/// it did before the FIN.
#[test]
fn a_closed_sender_still_acknowledges_pairs() {
    for options in ["sackOK ts 9 0", ""] {
        let mut host = in_pairs(options);
        host.application(Connection::shutdown_write);
        host.expect("F. 1:1(0) ack 1");
        host.send(". 1:1(0) ack 2");
        let texts: Vec<_> = (0..7)
            .map(|n| format!(". {}:{}(1460) ack 2", n * 1_460 + 1, n * 1_460 + 1_461))
            .collect();
        host.send_together(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        for segments in [2, 4, 6, 7] {
            host.expect(&format!(". 2:2(0) ack {}", segments * 1_460 + 1));
        }
        host.expect_nothing();
    }
}

#[test]
fn one_segment_waits_beside_pairs_that_were_acknowledged() {
    let mut host = in_pairs("sackOK ts 9 0");
    come_together(&mut host, 0..5);
    for segments in [2, 4, 5] {
        host.expect(&format!(". 1:1(0) ack {}", segments * 1_460 + 1));
    }
    come_together(&mut host, 5..6);
    host.expect_nothing();
    host.expect_after(ms(40), &format!(". 1:1(0) ack {}", 6 * 1_460 + 1));
}

/// In a batch of data, every second segment causes an acknowledgement of its own. But if an
/// acknowledgement reports out-of-order data, or is carried by a data segment, this one covers all
/// data received before.
#[test]
fn an_ack_of_a_hole_or_with_data_covers_all_pairs() {
    let mut host = in_pairs("sackOK ts 9 0");
    come_together(&mut host, (0..5).chain(6..8));
    let sent = host.take_one();
    assert_eq!(sent.says.ack, Some(5 * 1_460 + 1));
    assert!(!sent.says.options.sack.is_empty());

    let mut host = in_pairs("sackOK ts 9 0");
    come_together(&mut host, 0..6);
    host.write(10);
    host.expect("P. 1:11(10) ack 8761");
    host.expect_nothing();
}

#[test]
fn the_wait_counts_from_the_first_byte() {
    let mut host = modern();
    host.send(". 1:101(100) ack 1");
    host.pass_time(ms(30));
    host.send(". 101:201(100) ack 1");
    host.expect_after(ms(10), ". 1:1(0) ack 201");
}

#[test]
fn the_first_segments_of_a_connection_are_acknowledged_at_once() {
    let config = Config { acks: AckRule::Modern { quick: 3 }, ..Config::modern() };
    let mut host = Script::established(&config, SYN_ACK);
    for start in [1, 101, 201] {
        host.send(&format!(". {start}:{}(100) ack 1", start + 100));
        host.expect(&format!(". 1:1(0) ack {}", start + 100));
    }
    host.send(". 301:401(100) ack 1");
    host.expect_after(ms(40), ". 1:1(0) ack 401");
}

#[test]
fn pushed_data_that_was_read_is_acknowledged_at_once() {
    let mut host = modern();
    host.send("P. 1:101(100) ack 1");
    host.expect_nothing();
    host.read(100);
    host.expect(". 1:1(0) ack 101");
}

#[test]
fn an_answer_carries_the_acknowledgement() {
    let mut host = modern();
    for round in 0..20 {
        let (request, answer) = (round * 100 + 1, round * 50 + 1);
        host.send(&format!("P. {request}:{}(100) ack {answer}", request + 100));
        host.read(100);
        if round == 0 {
            // In the first round, the connection has not sent data before. The traffic does not yet
            // count as request and response, so the request is acknowledged as soon as it is read.
            // In later rounds, the acknowledgement waits for the answer.
            host.expect(". 1:1(0) ack 101");
        }
        host.expect_nothing();
        host.pass_time(ms(10));
        host.write(50);
        host.expect(&format!("P. {answer}:{}(50) ack {}", answer + 50, request + 100));
        host.expect_nothing();
    }
    assert_eq!(host.connection.statistics().delayed_ack_timeouts, 0);
    assert_eq!(host.connection.statistics().pure_acks_sent, 2, "the handshake's and the first");
}

#[test]
fn data_out_of_order_and_data_that_fills_a_hole_are_acknowledged_at_once() {
    for mut host in [modern(), bsd(Profile::BsdReno, 20_000)] {
        host.send(". 101:201(100) ack 1");
        host.expect(". 1:1(0) ack 1");
        host.send(". 1:101(100) ack 1");
        host.expect(". 1:1(0) ack 201");
        host.send(". 101:201(100) ack 1");
        host.expect(". 1:1(0) ack 201");
    }
}

#[test]
fn a_fin_is_acknowledged_at_once() {
    for mut host in [modern(), bsd(Profile::BsdTahoe, 20_000)] {
        host.send("FP. 1:101(100) ack 1");
        host.expect(". 1:1(0) ack 102");
    }
}

/// The sender's buffer holds one packet. The receiver therefore never gets a second packet, which
/// would cause an acknowledgement. Each packet has PSH, and is therefore acknowledged when the
/// application has read it, without waiting for the timer.
#[test]
fn a_send_buffer_of_one_packet_never_waits_for_the_timer() {
    for receive in [1_448, 17 * 1_448, 256 << 10] {
        let sender = Config { send_buffer: 1_448.into(), ..Config::modern() };
        let receiver = Config { receive_buffer: receive.into(), ..Config::modern() };
        let mut pair = Connections::new(&sender, &receiver, Network::clean(ms(1)), 1).established();
        let (start, mut written, mut read) = (pair.now, 0, 0);
        pair.run_until("every byte is read", |pair| {
            let now = pair.now;
            if written < 200 * 1_448 {
                written += pair.client.write(now, &[7; 1_448]).expect("the connection is open");
            }
            read += pair.read_all(End::Server).expect("the connection is open").len();
            read == 200 * 1_448
        });
        assert_eq!(pair.server().statistics().delayed_ack_timeouts, 0);
        assert!(
            pair.now.since(start) <= ms(402),
            "a round trip a packet: {}",
            pair.now.since(start)
        );
    }
}

/// The timer for delayed acknowledgements ticks every 200 ms in 4.3BSD. Each tick acknowledges all
/// segments that have arrived since the previous one.
#[test]
fn the_acknowledgements_of_1988_are_sent_at_the_tick() {
    for profile in [Profile::BsdTahoe, Profile::BsdReno] {
        let mut host = bsd(profile, 20_000);
        host.send(". 1:101(100) ack 1");
        host.expect_after(ms(200), ". 1:1(0) ack 101");
        host.pass_time(ms(150));
        host.send(". 101:201(100) ack 1");
        host.expect_after(ms(50), ". 1:1(0) ack 201");
        // Without reads of the application, all data is acknowledged only at the tick, however much
        // arrives.
        for start in (201..5_201).step_by(1_000) {
            host.send(&format!(". {start}:{}(1000) ack 1", start + 1_000));
        }
        host.expect_after(ms(200), ". 1:1(0) ack 5201");
    }
}

/// 4.3BSD sends a window update when reading allows a larger window than announced. The difference
/// must be 35 % of the buffer with Tahoe, or half of it with Reno. With both, a difference of two
/// segments also suffices.
#[test]
fn a_reader_triggers_the_window_update_of_its_year() {
    for (profile, packets, reads) in [
        (Profile::BsdTahoe, 17, 2),
        (Profile::BsdReno, 17, 2),
        (Profile::BsdTahoe, 4, 2),
        (Profile::BsdTahoe, 3, 2),
        (Profile::BsdTahoe, 2, 1),
        (Profile::BsdReno, 2, 1),
        (Profile::BsdTahoe, 1, 1),
        (Profile::BsdReno, 1, 1),
    ] {
        let buffer = packets * 1_460;
        let mut host = bsd(profile, buffer);
        for index in 0..packets.min(3) {
            let start = index * 1_460 + 1;
            host.send(&format!(". {start}:{}(1460) ack 1", start + 1_460));
        }
        let end = packets.min(3) * 1_460 + 1;
        for _ in 1..reads {
            host.read(1_460);
            host.expect_nothing();
        }
        host.read(1_460);
        let update = host.expect(&format!(". 1:1(0) ack {end}"));
        let free = buffer + 1 + reads * 1_460 - end;
        assert_eq!(update.says.window.map(usize::from), Some(free), "{profile}, {packets} packets");
    }
}

/// The application reads 1,750 bytes of a buffer of three packets, which is 40 %. Tahoe then sends
/// a window update, because its threshold is 35 %. Reno sends none, because its threshold is 50 %.
#[test]
fn tahoe_and_reno_differ_in_the_share_of_the_buffer() {
    for (profile, tells) in [(Profile::BsdTahoe, true), (Profile::BsdReno, false)] {
        let mut host = bsd(profile, 3 * 1_460);
        host.send(". 1:1461(1460) ack 1");
        host.send(". 1461:2921(1460) ack 1");
        host.read(1_750);
        let told = !host.take_sent().is_empty();
        assert_eq!(told, tells, "{profile}: 40 % of the buffer was read");
    }
}

/// RFC 9293 MUST-40: no profile delays an acknowledgement for more than half a second.
#[test]
fn no_acknowledgement_is_held_back_for_half_a_second() {
    for profile in Profile::ALL {
        for offset in [0, 1, 150, 199, 200, 201] {
            let mut host = Script::established(&profile.config(), SYN_ACK);
            host.pass_time(ms(offset));
            host.send(". 1:101(100) ack 1");
            host.pass_time(ms(499));
            host.expect(". 1:1(0) ack 101");
        }
    }
}

/// Each window update of 4.3BSD must announce a larger window than the segment before it. With an
/// unchanged window, the peer would take it for a duplicate ACK, and three of them for a loss.
#[test]
fn a_window_update_changes_the_window() {
    for profile in [Profile::BsdTahoe, Profile::BsdReno] {
        for read in (100..1_460).step_by(20) {
            let mut host = bsd(profile, 2 * 1_460);
            host.send(". 1:1461(1460) ack 1");
            host.send(". 1461:2921(1460) ack 1");
            host.expect_after(ms(200), ". 1:1(0) ack 2921 win 0");
            host.read(read);
            for sent in host.take_sent() {
                assert_eq!(sent.says.window.map(usize::from), Some(read), "{profile}");
            }
        }
    }
}
