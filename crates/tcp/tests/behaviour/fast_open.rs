//! Tests of TCP Fast Open (RFC 7413): the SYN and SYN-ACK carry data. If the server or the path
//! does not accept this data, the connection opens by an ordinary handshake.

use crate::{SYN_ACK, ms, secs};
use linerate_tcp::{Config, Connection, Error, Event, FastOpenLesson, FastOpenOffer, Path, State};
use linerate_testkit::Script;
use linerate_wire::{FastOpenCookie, TcpFlags};

/// The cookie that every server in these tests issues and accepts.
const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// The options of a SYN-ACK from a server with SACK, timestamps and window scaling, in the notation
/// of the scripts.
const OPTIONS: &str = "mss 1460 wscale 7 sackOK ts 5000 1";

fn cookie() -> FastOpenCookie {
    FastOpenCookie::new(&COOKIE).expect("eight bytes")
}

/// Returns a client that has written `count` bytes, and then sends its SYN with `offer`.
fn client(config: &Config, offer: FastOpenOffer, count: usize) -> Script {
    let mut host = Script::connect(config);
    host.application(|connection, _| connection.driver().try_fast_open(offer));
    host.write(count);
    host
}

/// Returns a client whose SYN carries the cookie of an earlier connection and `count` bytes of
/// data.
fn bringer(count: usize) -> Script {
    client(&Config::modern(), FastOpenOffer::Data { cookie: cookie(), mss: Some(1_460) }, count)
}

/// Returns a server that has accepted the cookie and `length` bytes of data on the SYN.
fn server(length: u32) -> Script {
    let syn = format!(
        "S 0:{length}({length}) win 65535 mss 1460 wscale 7 sackOK ts 77 0 tfo 0102030405060708"
    );
    Script::accept_fast(&Config::modern(), &syn)
}

fn lesson(host: &Script) -> Option<FastOpenLesson> {
    host.connection.fast_open_lesson()
}

#[test]
fn a_client_without_a_cookie_requests_one_and_sends_no_data() {
    let mut host = client(&Config::modern(), FastOpenOffer::Request, 100);
    assert_eq!(host.connection.room_on_syn(), 0);
    host.expect("S 0:0(0) mss 1460 tfo ask");
    host.expect_nothing();
    host.send(&format!("S. 0:0(0) ack 1 win 65535 {OPTIONS} tfo 0102030405060708"));
    host.expect("P. 1:101(100) ack 1");
    let news = FastOpenLesson {
        cookie: Some(cookie()),
        mss: Some(1_460),
        accepted: false,
        refused: false,
    };
    assert_eq!(lesson(&host), Some(news));
}

#[test]
fn a_client_with_a_cookie_sends_data_on_the_syn() {
    let mut host = bringer(100);
    assert!(host.connection.room_on_syn() > 100);
    host.expect("S 0:100(100) mss 1460 tfo 0102030405060708");
    assert_eq!(host.connection.room_on_syn(), 0, "the SYN was sent, so it has no more room");
    host.expect_nothing();
    assert_eq!(host.connection.state(), State::SynSent);
    host.send(&format!("S. 0:0(0) ack 101 win 65535 {OPTIONS}"));
    host.expect(". 101:101(0) ack 1");
    assert_eq!(host.connection.state(), State::Established);
    assert!(host.connection.information().syn_data_accepted);
    assert_eq!(lesson(&host).map(|news| (news.accepted, news.refused)), Some((true, false)));
    let statistics = host.connection.statistics();
    assert_eq!((statistics.bytes_sent, statistics.bytes_acknowledged), (100, 100));
    host.send("P. 1:11(10) ack 101 win 500");
    host.read(10);
    host.write(10);
    host.expect("P. 101:111(10) ack 11");
}

#[test]
fn data_not_acknowledged_by_the_syn_ack_is_sent_at_once() {
    for (options, selective) in [(OPTIONS, true), ("mss 1460", false)] {
        let mut host = bringer(100);
        host.expect("S 0:100(100) tfo 0102030405060708");
        host.send(&format!("S. 0:0(0) ack 1 win 65535 {options}"));
        host.expect("P. 1:101(100) ack 1");
        host.expect_nothing();
        assert!(!host.connection.information().syn_data_accepted);
        // The SYN-ACK does not acknowledge the data on the SYN. The server has therefore refused
        // this data.
        assert_eq!(lesson(&host).map(|news| (news.accepted, news.refused)), Some((false, true)));
        host.send(". 1:1(0) ack 101 win 500");
        assert_eq!(host.connection.unacknowledged_bytes(), 0, "with selective {selective}");
        let statistics = host.connection.statistics();
        assert_eq!((statistics.bytes_sent, statistics.bytes_acknowledged), (100, 100));
    }
}

#[test]
fn partly_accepted_data_is_continued() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.send(&format!("S. 0:0(0) ack 41 win 65535 {OPTIONS}"));
    host.expect("P. 41:101(60) ack 1");
    assert!(host.connection.information().syn_data_accepted);
    assert_eq!(lesson(&host).map(|news| (news.accepted, news.refused)), Some((true, false)));
}

#[test]
fn a_new_cookie_with_refused_data_is_not_a_refusal() {
    let mut host = bringer(100);
    host.expect("S 0:100(100) tfo 0102030405060708");
    host.send(&format!("S. 0:0(0) ack 1 win 65535 {OPTIONS} tfo 1112131415161718"));
    host.expect("P. 1:101(100) ack 1");
    let news = lesson(&host).unwrap();
    assert_eq!(news.cookie, FastOpenCookie::new(&[17, 18, 19, 20, 21, 22, 23, 24]));
    assert!(!news.accepted && !news.refused);
}

#[test]
fn an_unanswered_syn_is_repeated_without_option_and_data() {
    let mut host = bringer(100);
    host.expect("S 0:100(100) tfo 0102030405060708");
    let again = host.expect_after(secs(1), "S 0:0(0) mss 1460");
    assert_eq!(again.says.options.fast_open, None);
    // This SYN-ACK answers the second SYN, so the first SYN or its answer was lost. The probable
    // cause is the Fast Open option, so the attempt counts as refused.
    host.send(&format!("S. 0:0(0) ack 1 win 65535 {OPTIONS}"));
    host.expect("P. 1:101(100) ack 1");
    assert!(lesson(&host).unwrap().refused);
}

#[test]
fn an_answer_to_the_first_syn_counts_after_the_second_was_sent() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.expect_after(secs(1), "S 0:0(0)");
    host.send(&format!("S. 0:0(0) ack 101 win 65535 {OPTIONS}"));
    host.expect(". 101:101(0) ack 1");
    assert!(lesson(&host).unwrap().accepted && !lesson(&host).unwrap().refused);
    host.expect_silence(secs(10));
}

#[test]
fn a_server_that_never_answers_has_refused() {
    let mut host = bringer(100);
    assert_eq!(lesson(&host), None);
    host.pass_time(secs(300));
    assert_eq!(host.connection.error(), Some(Error::TimedOut));
    assert!(lesson(&host).unwrap().refused);
    assert!(host.take_sent()[1..].iter().all(|sent| sent.says.length == 0));
}

#[test]
fn a_reset_in_answer_to_the_option_is_a_refusal() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.send("R. 0:0(0) ack 101");
    assert_eq!(host.connection.error(), Some(Error::Refused));
    assert!(lesson(&host).unwrap().refused);
}

#[test]
fn an_abort_is_a_refusal_only_after_a_retransmission_of_the_syn() {
    for (time_limit, refused) in [(ms(900), None), (ms(1_100), Some(true))] {
        for end in [Connection::close, Connection::abort] {
            let mut host = bringer(100);
            host.expect("S 0:100(100)");
            host.pass_time(time_limit);
            host.application(end);
            assert_eq!(lesson(&host).map(|news| news.refused), refused);
        }
    }
}

#[test]
fn a_server_that_answers_a_request_without_a_cookie_has_refused() {
    let mut host = client(&Config::modern(), FastOpenOffer::Request, 0);
    host.expect("S 0:0(0) tfo ask");
    host.send(SYN_ACK);
    assert!(lesson(&host).unwrap().refused);
}

/// RFC 7413 §4.1.1: by an option without a cookie, a client requests a cookie. A server whose
/// SYN-ACK contains such an option provides no cookie, so the attempt counts as refused.
#[test]
fn an_empty_option_in_the_syn_ack_is_not_a_cookie() {
    let mut host = client(&Config::modern(), FastOpenOffer::Request, 0);
    host.expect("S 0:0(0) tfo ask");
    host.send(&format!("S. 0:0(0) ack 1 win 65535 {OPTIONS} tfo ask"));
    let news = lesson(&host).unwrap();
    assert_eq!((news.cookie, news.refused), (None, true));
}

/// RFC 7413 §4.1.3.1: the server accepts no data, and its SYN-ACK carries our cookie again. A new
/// cookie would mean that ours has expired. Since ours is still valid, the data was refused for
/// another reason.
#[test]
fn a_server_that_repeats_the_cookie_and_accepts_no_data_has_refused() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.send(&format!("S. 0:0(0) ack 1 win 65535 {OPTIONS} tfo 0102030405060708"));
    assert!(lesson(&host).unwrap().refused);
}

/// The SYN-ACK determines whether Fast Open was accepted. Before it, no outcome is reported, and
/// later segments do not change the outcome.
#[test]
fn the_outcome_is_known_with_the_answer_and_final() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.pass_time(ms(1_100));
    host.take_sent();
    assert_eq!(lesson(&host), None, "the SYN may still be answered");
    host.send(&format!("S. 0:0(0) ack 101 win 65535 {OPTIONS}"));
    let news = lesson(&host);
    assert!(news.is_some_and(|news| news.accepted && !news.refused));
    host.take_sent();
    host.send("R 1:1(0)");
    assert_eq!((host.connection.state(), lesson(&host)), (State::Closed, news));
}

/// RFC 7413 §4.1.3.1: the first SYN may have been lost because of its option. The SYN-ACK answers
/// the second SYN, which had no option, so the attempt counts as refused.
#[test]
fn an_answer_only_to_the_syn_without_option_is_a_refusal_even_without_data() {
    let mut host = bringer(0);
    host.expect("S 0:0(0) tfo 0102030405060708");
    host.expect_after(ms(1_000), "S 0:0(0)");
    host.send(SYN_ACK);
    assert!(lesson(&host).unwrap().refused);
}

#[test]
fn a_cookie_without_data_is_no_refusal() {
    let mut host = bringer(0);
    host.expect("S 0:0(0) tfo 0102030405060708");
    host.send(SYN_ACK);
    let news = lesson(&host).unwrap();
    assert!(!news.refused && !news.accepted);
}

#[test]
fn an_ordinary_open_has_no_option_and_no_outcome() {
    let mut host = Script::connect(&Config::modern());
    host.write(100);
    let syn = host.expect("S 0:0(0)");
    assert_eq!(syn.says.options.fast_open, None);
    // We have not requested a cookie, so the server must not send one. The cookie is ignored.
    host.send(&format!("S. 0:0(0) ack 1 win 65535 {OPTIONS} tfo 0102030405060708"));
    host.expect("P. 1:101(100) ack 1");
    assert_eq!(lesson(&host), None);
}

#[test]
fn data_on_a_syn_fits_the_cached_mss_less_options() {
    // The options of the SYN take 32 bytes: MSS 4, window scale 4, SACK permitted and timestamps
    // 12, and the cookie of eight bytes 12.
    let options = 32;
    for (mss, most) in [(None, 536), (Some(300), 300), (Some(1_460), 1_460), (Some(9_000), 1_460)] {
        let offer = FastOpenOffer::Data { cookie: cookie(), mss };
        let mut host = client(&Config::modern(), offer, 5_000);
        let length = most - options;
        host.expect(&format!("S 0:{length}({length})"));
        host.expect_nothing();
        host.send(&format!("S. 0:0(0) ack {} win 65535 {OPTIONS}", length + 1));
        let rest = host.take_sent();
        assert_eq!((rest[0].says.seq, rest[0].says.length), (length + 1, 1_448));
        assert_eq!(rest.iter().map(|sent| sent.says.length).sum::<u32>(), 5_000 - length);
    }
}

/// RFC 7413 §4.1.3: the SYN with data must fit the MTU of the first link. It must also fit 1,500
/// bytes, the MTU of Ethernet, because most paths carry packets of this size.
#[test]
fn data_on_a_syn_is_limited_by_the_first_link_and_ethernet() {
    for (mtu, most) in [(576, 536), (9_000, 1_460)] {
        let mut host = Script::with_path(&Config::modern(), Path::ipv4(mtu));
        let offer = FastOpenOffer::Data { cookie: cookie(), mss: Some(8_960) };
        host.application(|connection, _| connection.driver().try_fast_open(offer));
        host.write(5_000);
        let length = most - 32;
        host.expect(&format!("S 0:{length}({length})"));
    }
}

#[test]
fn a_cookie_that_does_not_fit_beside_the_options_leaves_an_ordinary_handshake() {
    let longest = FastOpenCookie::new(&[7; 16]).unwrap();
    let offer = FastOpenOffer::Data { cookie: longest, mss: None };
    let mut host = client(&Config::modern(), offer, 100);
    host.expect("S 0:100(100) tfo 07070707070707070707070707070707");
    let mut host = client(&Config { user_timeout_option: true, ..Config::modern() }, offer, 100);
    let syn = host.expect("S 0:0(0)");
    assert_eq!(syn.says.options.fast_open, None);
    host.send(SYN_ACK);
    host.expect("P. 1:101(100) ack 1");
    assert_eq!(lesson(&host), None);
}

#[test]
fn urgent_data_waits_for_the_handshake() {
    let offer = FastOpenOffer::Data { cookie: cookie(), mss: None };
    let mut host = Script::connect(&Config::modern());
    host.application(|connection, _| connection.driver().try_fast_open(offer));
    host.write_urgent(10);
    host.expect("S 0:0(0) tfo 0102030405060708");
    host.send(SYN_ACK);
    host.expect("PU. 1:11(10) ack 1 urg 10");
}

#[test]
fn a_close_before_the_answer_sends_the_fin_after_the_handshake() {
    let mut host = bringer(100);
    host.application(|connection, now| connection.shutdown_write(now));
    host.expect("S 0:100(100)");
    host.send(&format!("S. 0:0(0) ack 101 win 65535 {OPTIONS}"));
    host.expect("F. 101:101(0) ack 1");
    assert_eq!(host.connection.state(), State::FinWait1);
}

#[test]
fn data_on_the_syn_ack_is_accepted() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.send(&format!("S. 0:50(50) ack 101 win 65535 {OPTIONS}"));
    host.expect(". 101:101(0) ack 51");
    host.read(50);
    host.send("P. 51:61(10) ack 101 win 500");
    host.read(10);
}

#[test]
fn a_simultaneous_open_sends_data_after_the_handshake() {
    let mut host = bringer(100);
    host.expect("S 0:100(100) tfo 0102030405060708");
    // In a simultaneous open, the peer's SYN carries data and a cookie. A client cannot validate
    // cookies, so it does not accept the data.
    host.send("S 0:20(20) win 1000 mss 1460 tfo 1112131415161718");
    let answer = host.expect("S. 0:0(0) ack 1");
    assert_eq!(answer.says.options.fast_open, None);
    host.send("S. 0:0(0) ack 1 win 1000 mss 1460");
    assert_eq!(host.connection.state(), State::Established);
    host.expect("P. 1:101(100) ack 1");
    host.send("P. 1:21(20) ack 101 win 1000");
    host.read(20);
    assert_eq!(host.connection.statistics().bytes_acknowledged, 100);
}

#[test]
fn a_server_accepts_data_on_the_syn_and_answers_before_the_handshake_is_complete() {
    let mut host = server(100);
    assert_eq!(host.events(), [Event::Readable]);
    host.read(100);
    host.write(50);
    host.expect("S. 0:0(0) ack 101");
    host.expect("P. 1:51(50) ack 101");
    assert_eq!(host.connection.state(), State::SynReceived);
    assert!(host.connection.information().syn_data_accepted);
    host.send(". 101:101(0) ack 1 win 500");
    assert_eq!(
        (host.connection.state(), host.events()),
        (State::Established, vec![Event::Connected, Event::Writable])
    );
    host.expect_nothing();
    host.send("P. 101:111(10) ack 51 win 500");
    host.read(10);
    assert_eq!(host.connection.unacknowledged_bytes(), 0);
}

#[test]
fn early_data_of_a_server_is_limited_by_the_initial_window() {
    let mut host = server(10);
    host.write(60_000);
    host.expect("S. 0:0(0) ack 11");
    let early = host.take_sent();
    assert_eq!(early.len(), 10);
    assert!(early.iter().all(|sent| sent.says.length == 1_448));
}

#[test]
fn early_data_of_a_server_is_limited_by_the_window_of_the_syn() {
    let syn = "S 0:10(10) win 2000 mss 1000 tfo 0102030405060708";
    let mut host = Script::accept_fast(&Config::modern(), syn);
    host.write(10_000);
    host.expect("S. 0:0(0) ack 11");
    let early: u32 = host.take_sent().iter().map(|sent| sent.says.length).sum();
    assert!(early <= 2_000, "{early} bytes");
}

#[test]
fn a_response_with_a_fin_can_precede_the_end_of_the_handshake() {
    let mut host = server(100);
    host.read(100);
    host.write(50);
    host.application(|connection, now| connection.close(now));
    host.expect("S. 0:0(0) ack 101");
    host.expect("FP. 1:51(50) ack 101");
    assert_eq!(host.connection.state(), State::SynReceived);
    host.send(". 101:101(0) ack 1 win 500");
    assert_eq!(host.connection.state(), State::FinWait1);
    host.send("F. 101:101(0) ack 52 win 500");
    assert_eq!(host.connection.state(), State::TimeWait);
    host.expect(". 52:52(0) ack 102");
}

#[test]
fn a_lost_syn_ack_is_retransmitted_alone_and_early_data_after_the_handshake() {
    for (options, selective) in [("sackOK ts 77 0", true), ("", false)] {
        let syn = format!("S 0:100(100) win 65535 mss 1460 {options} tfo 0102030405060708");
        let mut host = Script::accept_fast(&Config::modern(), &syn);
        host.application(|connection, _| connection.driver().give_cookie(cookie()));
        host.application(|connection, _| connection.set_no_delay(true));
        host.write(3_000);
        host.expect("S. 0:0(0) ack 101 tfo 0102030405060708");
        assert_eq!(host.take_sent().iter().map(|sent| sent.says.length).sum::<u32>(), 3_000);
        let again = host.expect_after(secs(1), "S. 0:0(0) ack 101");
        assert_eq!(again.says.options.fast_open, None);
        host.write(10);
        host.expect_nothing();
        host.send(". 101:101(0) ack 1 win 65535");
        let sent = host.take_sent();
        assert_eq!(sent[0].says.seq, 1, "with selective {selective}");
        assert_eq!(sent.iter().map(|sent| sent.says.length).sum::<u32>(), 3_010);
        assert!(sent.iter().all(|sent| sent.at == host.now));
    }
}

#[test]
fn early_data_that_arrived_is_not_retransmitted() {
    let mut host = server(100);
    host.write(3_000);
    host.expect("S. 0:0(0) ack 101");
    host.take_sent();
    host.expect_after(secs(1), "S. 0:0(0) ack 101");
    host.send(". 101:101(0) ack 3001 win 500");
    assert_eq!(host.connection.unacknowledged_bytes(), 0);
    host.expect_silence(secs(10));
}

#[test]
fn a_duplicated_syn_delivers_its_data_once() {
    let mut host = server(100);
    host.read(100);
    host.expect("S. 0:0(0) ack 101");
    host.send("S 0:100(100) win 65535 mss 1460 wscale 7 sackOK ts 77 0 tfo 0102030405060708");
    host.expect("S. 0:0(0) ack 101");
    assert_eq!(host.connection.readable_bytes(), 0);
    // The client's first SYN has timed out. The client therefore sends another SYN without the Fast
    // Open option.
    host.send("S 0:0(0) win 65535 mss 1460 wscale 7 sackOK ts 1077 0");
    host.expect("S. 0:0(0) ack 101");
    host.send(". 101:101(0) ack 1 win 500");
    assert_eq!(host.connection.state(), State::Established);
    // A SYN with the cookie and data of the first SYN arrives after the handshake. Its timestamp is
    // current, so PAWS does not drop it. It gets a challenge ACK (RFC 5961 §4), as any SYN does,
    // and its data is ignored.
    host.send("S 0:100(100) win 65535 mss 1460 wscale 7 sackOK ts 2077 0 tfo 0102030405060708");
    host.expect(". 1:1(0) ack 101");
    assert_eq!(
        (host.connection.state(), host.connection.readable_bytes()),
        (State::Established, 0)
    );
}

#[test]
fn a_server_accepts_data_on_a_syn_up_to_its_room() {
    let config = Config { receive_buffer: 60.into(), ..Config::modern() };
    let syn = "S 0:100(100) win 65535 mss 1460 tfo 0102030405060708";
    let mut host = Script::accept_fast(&config, syn);
    host.expect("S. 0:0(0) ack 61 win 0");
    host.read(60);
    host.send(". 61:61(0) ack 1 win 500");
    host.expect(". 1:1(0) ack 61 win 60");
    host.send("P. 61:101(40) ack 1 win 500");
    host.read(40);
}

#[test]
fn a_fin_on_a_syn_is_ignored() {
    let syn = "SF 0:10(10) win 65535 mss 1460 tfo 0102030405060708";
    let mut host = Script::accept_fast(&Config::modern(), syn);
    host.expect("S. 0:0(0) ack 11");
    host.read(10);
    assert_eq!(host.read_nothing(), Err(Error::WouldBlock));
    host.send("F. 11:11(0) ack 1 win 500");
    host.expect(". 1:1(0) ack 12");
    assert_eq!(host.connection.state(), State::CloseWait);
}

#[test]
fn a_reset_before_the_handshake_is_complete_ends_the_connection_for_its_application() {
    let mut host = server(100);
    host.expect("S. 0:0(0) ack 101");
    host.read(100);
    host.send("R 101:101(0)");
    assert_eq!(
        (host.connection.state(), host.connection.error()),
        (State::Closed, Some(Error::Reset))
    );
    assert_eq!(host.read_nothing(), Err(Error::Reset));
}

#[test]
fn a_cookie_without_syn_is_ignored() {
    let mut host = Script::established(&Config::modern(), SYN_ACK);
    host.send("P. 1:11(10) ack 1 win 500 tfo 0102030405060708");
    host.read(10);
    assert_eq!(lesson(&host), None);
    host.write(10);
    let sent = host.expect("P. 1:11(10) ack 11");
    assert_eq!(
        (sent.says.options.fast_open, sent.says.flags.contains(TcpFlags::SYN)),
        (None, false)
    );
}

#[test]
fn a_syn_ack_of_more_than_the_syn_is_reset() {
    let mut host = bringer(100);
    host.expect("S 0:100(100)");
    host.send(&format!("S. 0:0(0) ack 102 win 65535 {OPTIONS}"));
    host.expect("R 102:102(0)");
    assert_eq!(host.connection.state(), State::SynSent);
}

#[test]
fn a_closed_window_on_the_syn_ack_holds_refused_data_back_and_is_probed() {
    for options in [OPTIONS, "mss 1460"] {
        let mut host = bringer(100);
        host.expect("S 0:100(100)");
        host.send(&format!("S. 0:0(0) ack 1 win 0 {options}"));
        host.expect(". 1:1(0) ack 1");
        host.pass_time(secs(5));
        let probe = &host.take_sent()[0];
        assert_eq!((probe.says.seq, probe.says.length), (1, 1));
        host.send(". 1:1(0) ack 1 win 500");
        let sent = host.take_sent();
        assert_eq!((sent[0].says.seq, sent[0].says.length), (1, 100));
    }
}

/// Some servers use the experimental option (kind 254, identifier 0xF989) that preceded RFC 7413. A
/// cookie that a server has sent in this option is returned to the server in this option.
#[test]
fn a_cookie_is_returned_in_the_option_kind_of_its_receipt() {
    let cookie = cookie().carried(true);
    let offer = FastOpenOffer::Data { cookie, mss: Some(1_460) };
    let mut bringing = client(&Config::modern(), offer, 100);
    let syn = bringing.take_one();
    assert_eq!((syn.says.options.fast_open, syn.says.length), (Some(cookie), 100));
}
