//! Tests of pacing: the times at which segments are sent, the limits of the pacing rate, and
//! segments that are not paced.

use crate::{ms, secs};
use linerate_tcp::{BufferSize, Config, CongestionName, PacingRule};
use linerate_testkit::{Connections, End, Fate, Network, Script};
use linerate_units::{Duration, Instant, Rate};
use std::cell::RefCell;
use std::rc::Rc;

const PACED: Config = Config {
    pacing: PacingRule::On,
    send_buffer: BufferSize::Fixed(256 << 10),
    ..Config::modern()
};

/// Establishes a connection with a round-trip time of twice `latency`. Records the transmission
/// time of each data segment of the client.
fn paced_pair(config: &Config, latency: Duration) -> (Connections, Rc<RefCell<Vec<Instant>>>) {
    let mut pair =
        Connections::new(config, &Config::modern(), Network::clean(latency), 1).established();
    let send_times = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&send_times);
    pair.set_filter(move |now, from, segment| {
        if from == End::Client && !segment.payload.is_empty() {
            log.borrow_mut().push(now);
        }
        None
    });
    (pair, send_times)
}

/// Returns the transmission times without repetitions, in microseconds since the first, each with
/// the number of segments sent at that time.
fn bursts(send_times: &[Instant]) -> Vec<(u64, usize)> {
    let first = send_times[0];
    let mut bursts: Vec<(u64, usize)> = Vec::new();
    for sent_at in send_times {
        let at = sent_at.since(first).as_micros();
        match bursts.last_mut() {
            Some((last, count)) if *last == at => *count += 1,
            _ => bursts.push((at, 1)),
        }
    }
    bursts
}

fn write(pair: &mut Connections, count: usize) {
    let (now, data) = (pair.now, vec![3; count]);
    assert_eq!(pair.client.write(now, &data), Ok(count));
}

#[test]
fn the_first_window_leaves_in_pairs_over_half_a_round_trip() {
    let (mut pair, send_times) = paced_pair(&PACED, ms(50));
    write(&mut pair, 10 * 1_448);
    pair.pass_time(ms(99));
    let bursts = bursts(&send_times.borrow());
    // In slow start, the pacing rate is two windows per round trip, here twenty segments in 100 ms.
    // A pair of segments therefore follows the previous pair after 10 ms.
    assert_eq!(bursts.iter().map(|(_, count)| count).sum::<usize>(), 10);
    for pair in bursts.windows(2).filter(|pair| pair[0].1 == 2) {
        assert_eq!(pair[1].0 - pair[0].0, 10_000, "{bursts:?}");
    }
    assert!(bursts.len() >= 5 && bursts.last().unwrap().0 <= 50_000, "{bursts:?}");
}

#[test]
fn after_slow_start_the_window_leaves_in_five_sixths_of_a_round_trip() {
    let config = Config { congestion: CongestionName::NewReno, ..PACED };
    let (mut pair, send_times) = paced_pair(&config, ms(50));
    // The client's 40th data segment is lost, which ends slow start.
    let mut left = 40;
    let log = Rc::clone(&send_times);
    pair.set_filter(move |now, from, segment| {
        if from == End::Client && !segment.payload.is_empty() {
            log.borrow_mut().push(now);
            left -= 1;
        }
        (left == 0 && from == End::Client).then(|| {
            left = -1;
            Fate::Lose
        })
    });
    let data = vec![3; 10_000];
    let end = pair.now + secs(5);
    while pair.now < end {
        let now = pair.now;
        let _ = pair.client.write(now, &data).unwrap();
        let _ = pair.read_all(End::Server).unwrap();
        assert!(pair.step());
    }
    let information = pair.client.information();
    assert!(information.congestion_window > information.slow_start_threshold);
    let since = pair.now - secs(1);
    let recent: Vec<_> = send_times.borrow().iter().copied().filter(|&at| at >= since).collect();
    let bursts = bursts(&recent);
    let most = bursts.iter().map(|(_, count)| *count).max().unwrap();
    assert!(most <= 3, "a burst of {most}, where the window is {}", information.congestion_window);
}

#[test]
fn a_path_shorter_than_a_burst_is_not_paced() {
    let (mut pair, send_times) = paced_pair(&PACED, Duration::from_micros(400));
    write(&mut pair, 100 * 1_448);
    pair.pass_time(ms(10));
    let bursts = bursts(&send_times.borrow());
    assert_eq!(bursts[0], (0, 10), "the initial window at once");
}

#[test]
fn pacing_is_off_if_configured_or_without_a_requested_rate() {
    for pacing in [PacingRule::Off, PacingRule::Controller] {
        let (mut pair, send_times) = paced_pair(&Config { pacing, ..PACED }, ms(50));
        write(&mut pair, 10 * 1_448);
        pair.pass_time(ms(99));
        assert_eq!(bursts(&send_times.borrow()), [(0, 10)], "{pacing:?}");
    }
}

/// The pacing rate is limited to 1,448,000 bytes per second, which is a pair of segments every 2
/// ms. This holds from the first segment on, for all paths and pacing rules.
#[test]
fn a_maximum_rate_paces_with_every_rule_from_the_start() {
    let max_pacing_rate = Some(Rate::from_bits_per_second(8 * 1_448_000));
    for (pacing, latency) in
        [(PacingRule::Off, 50), (PacingRule::Controller, 0), (PacingRule::On, 1)]
    {
        let config = Config { pacing, max_pacing_rate, ..PACED };
        let (mut pair, send_times) = paced_pair(&config, ms(latency));
        write(&mut pair, 10 * 1_448);
        pair.pass_time(ms(49));
        let bursts = bursts(&send_times.borrow());
        assert_eq!(bursts.iter().map(|(_, count)| count).sum::<usize>(), 10, "{bursts:?}");
        assert!(bursts[0].1 <= 3, "{pacing:?}: {bursts:?}");
        for pair in bursts.windows(2).skip(1) {
            assert_eq!(pair[1].0 - pair[0].0, 2_000, "{pacing:?}: {bursts:?}");
        }
        assert_eq!(pair.client.information().max_pacing_rate, max_pacing_rate);
    }
}

#[test]
fn a_maximum_rate_can_be_set_and_removed_later() {
    let config = Config { pacing: PacingRule::Controller, ..PACED };
    let (mut pair, send_times) = paced_pair(&config, ms(1));
    // Returns the number of segments sent in a second, and the congestion window in bytes at the
    // end.
    let mut send_for_a_second = |rate: Option<u64>| {
        pair.client.set_max_pacing_rate(rate.map(|bytes| Rate::from_bits_per_second(8 * bytes)));
        send_times.borrow_mut().clear();
        let end = pair.now + secs(1);
        while pair.now < end {
            let _ = pair.client.write(pair.now, &[3; 10_000]).unwrap();
            let _ = pair.read_all(End::Server).unwrap();
            assert!(pair.step());
        }
        (send_times.borrow().len(), pair.client.information().congestion_window)
    };
    let (limited, window) = send_for_a_second(Some(144_800));
    assert!((98..=104).contains(&limited), "100 segments a second, and {limited} were sent");
    assert!(window <= 20 * 1_448, "an unused window must not grow: {window}");
    let (free, grown) = send_for_a_second(None);
    assert!(free > 1_000 && grown > window, "{free}, {grown}");
}

/// A maximum pacing rate takes effect only if it is below the rate that congestion control sets.
#[test]
fn congestion_control_paces_below_the_maximum_rate() {
    let first_bursts = |max_pacing_rate| {
        let config =
            Config { congestion: CongestionName::Bbr, max_pacing_rate, ..Config::modern() };
        let (mut pair, send_times) = paced_pair(&config, ms(50));
        write(&mut pair, 10 * 1_448);
        pair.pass_time(ms(99));
        bursts(&send_times.borrow())
    };
    let (free, high) =
        (first_bursts(None), first_bursts(Some(Rate::from_bits_per_second(1 << 40))));
    let low = first_bursts(Some(Rate::from_bits_per_second(8 * 144_800)));
    assert_eq!(free, high);
    assert!(low.last().unwrap().0 > free.last().unwrap().0 && low[2].0 - low[1].0 == 20_000);
}

/// Opens a connection with segments of 1,000 bytes and a round-trip time of 100 ms.
fn established() -> Script {
    let mut host = Script::connect(&PACED);
    host.expect("S 0:0(0)");
    host.pass_time(ms(100));
    host.send("S. 0:0(0) ack 1 win 65535 mss 1000");
    host.expect(". 1:1(0) ack 1");
    host
}

#[test]
fn acknowledgements_and_timeouts_are_not_paced() {
    let mut host = established();
    host.write(30_000);
    host.take_sent();
    host.send("P. 1:101(100) ack 1");
    host.expect(". 3001:3001(0) ack 101");
    host.take_sent();
    // The RTO is 300 ms. The first 250 ms are enough for pacing to send the rest of the window, and
    // nothing is repeated. The retransmission follows exactly 50 ms later, so pacing does not delay
    // it.
    host.pass_time(ms(250));
    let window = host.take_sent();
    assert!(window.iter().all(|sent| sent.says.seq > 1));
    host.expect_after(ms(50), ". 1:1001(1000) ack 101");
}

#[test]
fn paced_segments_are_sent_on_time() {
    let mut host = established();
    host.write(30_000);
    let at_once = host.take_sent().len();
    assert!(at_once < 10, "{at_once}");
    let mut sent = at_once;
    while sent < 10 {
        let next = host.connection.poll_timeout();
        assert!(next > host.now && next <= host.now + ms(10), "the next burst has its time");
        host.pass_time(next.since(host.now));
        sent += host.take_sent().len();
    }
    assert_eq!(sent, 10, "the window");
}

/// Retransmissions are paced, even if the application has written nothing more, so that no new data
/// follows them.
#[test]
fn retransmissions_without_new_data_are_paced() {
    let mut pair =
        Connections::new(&PACED, &Config::modern(), Network::clean(ms(50)), 1).established();
    let (mut count, repeated) = (0, Rc::new(RefCell::new(Vec::new())));
    let log = Rc::clone(&repeated);
    pair.set_filter(move |now, from, segment| {
        if from != End::Client || segment.payload.is_empty() {
            return None;
        }
        count += 1;
        if count > 10 {
            log.borrow_mut().push(now);
        }
        (2..8).contains(&count).then_some(Fate::Lose)
    });
    write(&mut pair, 10 * 1_448);
    pair.run_until("everything has arrived", |pair| pair.client.unacknowledged_bytes() == 0);
    let counted = pair.client.statistics();
    assert_eq!((counted.retransmission_timeouts, counted.retransmitted_segments), (0, 6));
    assert!(bursts(&repeated.borrow()).len() >= 3, "{:?}", bursts(&repeated.borrow()));
}

/// draft-ietf-ccwg-bbr §5.6.2: the first window is paced by the round-trip time that the handshake
/// has measured, and not by the default of 1 ms.
#[test]
fn bbr_paces_its_first_window_by_the_round_trip_of_the_handshake() {
    let config = Config { congestion: CongestionName::Bbr, ..Config::modern() };
    let (mut pair, send_times) = paced_pair(&config, ms(50));
    write(&mut pair, 10 * 1_448);
    pair.pass_time(ms(99));
    let bursts = bursts(&send_times.borrow());
    assert_eq!(bursts.iter().map(|(_, count)| count).sum::<usize>(), 10);
    assert!(bursts.len() >= 4 && bursts.last().unwrap().0 >= 20_000, "{bursts:?}");
}
