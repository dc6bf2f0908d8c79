//! Tests of the low-water mark of unsent data (`TCP_NOTSENT_LOWAT`). It limits how much unsent data
//! a write may leave, and determines when the connection reports room for more.

use crate::secs;
use linerate_tcp::{Config, Error, Event};
use linerate_testkit::Script;

/// The TCP options that the peer offers. Each test runs twice: without options, and with the
/// options that output prediction requires. Output prediction is the fast path for sent segments.
const OFFERS: [&str; 2] = ["", " sackOK ts 100 1"];

fn established(offers: &str) -> Script {
    let config = Config { send_buffer: 1_000_000.into(), ..Config::modern() };
    let mut host =
        Script::established(&config, &format!("S. 0:0(0) ack 1 win 60000 mss 1000{offers}"));
    host.application(|connection, _| connection.set_unsent_low_water(Some(5_000)));
    host.events();
    host
}

#[test]
fn a_write_accepts_what_can_be_sent_and_the_low_water_mark() {
    for offers in OFFERS {
        let mut host = established(offers);
        let window = 10 * host.connection.effective_mss();
        assert_eq!(host.connection.unsent_low_water(), Some(5_000));
        assert_eq!(host.connection.writable_bytes(), window + 5_000);
        assert_eq!(host.try_write(50_000), Ok(window + 5_000));
        assert_eq!((host.try_write(1), host.connection.writable_bytes()), (Ok(0), 0));
        assert_eq!(host.take_sent().len(), 10);
        assert_eq!(host.try_write(1), Ok(0), "the amount of unsent data has not changed");
        assert_eq!(host.events(), []);
    }
}

#[test]
fn room_is_reported_when_data_is_sent() {
    for offers in OFFERS {
        let mut host = established(offers);
        let full = host.connection.effective_mss();
        assert!(host.try_write(50_000).is_ok());
        host.take_sent();
        host.events();
        host.send(&format!(". 1:1(0) ack {}", 2 * full + 1));
        assert_eq!(host.take_sent().len(), 4, "slow start");
        assert!(host.events().contains(&Event::Writable));
        assert_eq!(host.connection.writable_bytes(), 4 * full);
        assert_eq!(host.try_write(50_000), Ok(4 * full));
    }
}

#[test]
fn without_the_mark_the_buffer_is_the_limit() {
    let mut host = established("");
    assert_eq!(host.try_write(50_000), Ok(15_000));
    host.application(|connection, _| connection.set_unsent_low_water(None));
    assert!(host.events().contains(&Event::Writable));
    assert_eq!(host.try_write(50_000), Ok(50_000));
}

#[test]
fn a_closed_direction_accepts_nothing() {
    let mut host = established("");
    host.application(|connection, now| connection.shutdown_write(now));
    assert_eq!(host.try_write(1), Err(Error::Shutdown));
    host.application(|connection, _| connection.set_unsent_low_water(None));
    assert_eq!(host.try_write(1), Err(Error::Shutdown));
    assert_eq!(host.connection.writable_bytes(), 0);
}

#[test]
fn a_compact_connection_keeps_its_mark() {
    let mut host = established(" sackOK ts 100 1");
    host.pass_time(secs(5));
    host.events();
    let compact = host.connection.compact().expect("nothing waits");
    assert_eq!(compact.look().unsent_low_water(), Some(5_000));
}
