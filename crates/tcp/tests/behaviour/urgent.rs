//! Tests of urgent data (RFC 9293 §3.8.5, RFC 6093): its arrival is announced to the application,
//! which reads it in order with the other data.

use crate::{SYN_ACK, ms};
use linerate_tcp::{Config, Event};
use linerate_testkit::Script;

fn established() -> Script {
    Script::established(&Config::modern(), SYN_ACK)
}

/// RFC 9293 §3.1: the urgent pointer is the offset from the segment's sequence number to the first
/// byte after the urgent data.
#[test]
fn the_pointer_points_behind_the_last_urgent_byte() {
    let mut host = established();
    host.write_urgent(5);
    host.expect("UP. 1:6(5) ack 1 urg 5");
    host.write(10);
    host.send(". 1:1(0) ack 6");
    host.expect("P. 6:16(10) ack 1");
}

#[test]
fn every_segment_up_to_the_mark_announces_it() {
    let mut host = established();
    host.write(1_460);
    host.expect("P. 1:1461(1460) ack 1");
    host.application(|connection, _| connection.set_no_delay(true));
    host.write(1_460);
    host.write_urgent(100);
    host.write(100);
    host.expect("U. 1461:2921(1460) ack 1 urg 1560");
    host.expect("UP. 2921:3121(200) ack 1 urg 100");
    host.expect_after(ms(200), "U. 1:1461(1460) ack 1 urg 3020");
}

#[test]
fn a_retransmission_announces_urgent_data_again() {
    let mut host = established();
    host.write_urgent(5);
    host.expect("UP. 1:6(5) ack 1 urg 5");
    host.expect_after(ms(200), "UP. 1:6(5) ack 1 urg 5");
}

#[test]
fn the_peer_s_mark_is_announced_once_and_counts_down_while_reading() {
    let mut host = established();
    host.send("UP. 1:11(10) ack 1 urg 5");
    assert_eq!(host.events()[..], [Event::Readable, Event::Urgent]);
    assert_eq!(host.connection.urgent_distance(), Some(5));
    host.read(2);
    assert_eq!(host.connection.urgent_distance(), Some(3));
    host.send("UP. 1:11(10) ack 1 urg 5");
    assert_eq!(host.events(), [], "the same mark again");
    host.read(3);
    assert_eq!(host.connection.urgent_distance(), None);
    host.read(5);
}

#[test]
fn the_mark_can_be_ahead_of_the_data() {
    let mut host = established();
    host.send("U. 1:11(10) ack 1 urg 300");
    assert_eq!(host.connection.urgent_distance(), Some(300));
    host.read(10);
    assert_eq!(host.connection.urgent_distance(), Some(290));
    host.send("U. 11:311(300) ack 1 urg 290");
    assert_eq!(host.events()[..], [Event::Readable, Event::Urgent]);
    host.read(290);
    assert_eq!(host.connection.urgent_distance(), None);
    host.read(10);
}

#[test]
fn a_later_mark_replaces_an_earlier_one() {
    let mut host = established();
    host.send("UP. 1:11(10) ack 1 urg 5");
    host.events();
    host.send("UP. 11:21(10) ack 1 urg 5");
    assert_eq!(host.events(), [Event::Readable, Event::Urgent]);
    assert_eq!(host.connection.urgent_distance(), Some(15));
}

/// A peer can announce urgent data by a segment without data. It does so if our receive window is
/// closed.
#[test]
fn an_empty_segment_announces_urgent_data() {
    let mut host = established();
    host.send("U. 1:1(0) ack 1 urg 5");
    assert_eq!(host.events(), [Event::Urgent]);
}

#[test]
fn an_urgent_pointer_of_zero_announces_nothing() {
    let mut host = established();
    host.send("U. 1:1(0) ack 1 urg 0");
    assert_eq!((host.events(), host.connection.urgent_distance()), (vec![], None));
}

/// While the application has not read all urgent data, segments miss header prediction. The first
/// segment after this read hits again.
#[test]
fn reading_past_the_mark_brings_prediction_back() {
    let mut host = established();
    host.send("UP. 1:11(10) ack 1 urg 5");
    host.read(10);
    let hits = host.connection.statistics().prediction.hits();
    host.send(". 11:21(10) ack 1");
    assert_eq!(host.connection.statistics().prediction.hits(), hits + 1);
}

#[test]
fn urgent_data_in_a_shut_down_direction_is_not_reported() {
    let mut host = established();
    host.send("UP. 1:11(10) ack 1 urg 5");
    host.application(linerate_tcp::Connection::shutdown_read);
    host.events();
    host.send("UP. 11:21(10) ack 1 urg 5");
    assert_eq!(host.connection.urgent_distance(), None);
    assert!(!host.events().contains(&Event::Urgent));
}
