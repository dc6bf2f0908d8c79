//! Tests of serial lines over pseudo-terminals, with a link at one end or at both.

use super::*;
use crate::testing::send;
use crate::wait::Waiter;
use linerate_wire::{Ipv4Header, Protocol, SeqNum, TcpFlags, TcpHeader};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, tcgetattr};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

/// Configuration of a line with 4 Mbit/s, a rate so high that tests hardly wait for the line.
const FAST: SerialConfig =
    SerialConfig { queue: 1_500, mtu: 1_500, ..SerialConfig::new(4_000_000) };

/// Returns the controlling end of a new pseudo-terminal, and the path of its terminal end.
fn terminal() -> (OwnedFd, String) {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&near).unwrap();
    unlockpt(&near).unwrap();
    let path = ptsname(&near, Vec::new()).unwrap().into_string().unwrap();
    (near, path)
}

fn write(line: &OwnedFd, bytes: &[u8]) {
    assert_eq!(rustix::io::write(line, bytes), Ok(bytes.len()));
}

/// Returns segment number `number` of connection `connection`. Each segment carries one typed
/// character.
fn typed(connection: u8, number: u8) -> Vec<u8> {
    let mut packet = vec![0; 41];
    let mut ip = Ipv4Header::new(
        Ipv4Addr::new(192, 0, 2, connection),
        Ipv4Addr::new(192, 0, 2, 99),
        Protocol::TCP,
    );
    ip.identification = number.into();
    ip.emit(21, &mut packet);
    let tcp = TcpHeader {
        seq: SeqNum::new(u32::from(number)),
        ack: SeqNum::new(u32::from(number)),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        window: 4_096,
        ..TcpHeader::default()
    };
    tcp.emit(0, &mut packet[20..]);
    packet[40] = number;
    packet
}

/// Drives the line, at whose end `near` packets wait to be sent, until `far` has received `count`
/// packets. Returns these packets.
fn carried(near: &mut SerialLink, far: &mut SerialLink, count: usize) -> Vec<Vec<u8>> {
    let (mut waiter, mut packets) = (Waiter::new().unwrap(), Vec::new());
    loop {
        near.transmit(0, |_| None).unwrap();
        far.receive(count, |packet| packets.push(packet.bytes.to_vec())).unwrap();
        if packets.len() >= count {
            return packets;
        }
        waiter.wait(near, Instant::NEVER).unwrap();
    }
}

fn received(link: &mut SerialLink) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    link.receive(100, |packet| packets.push(packet.bytes.to_vec())).unwrap();
    packets
}

#[test]
fn typed_characters_take_four_bytes_and_the_frame() {
    let [mut near, mut far] = SerialLink::pair(&FAST).unwrap();
    let packets: Vec<_> = (1..=10).map(|number| typed(1, number)).collect();
    assert_eq!(send(&mut near, &packets), Ok(10));
    assert_eq!(carried(&mut near, &mut far, 10), packets);
    let counters = near.counters().sent;
    assert_eq!((counters.packets, counters.packet_bytes), (10, 410));
    assert_eq!((counters.whole_headers, counters.compressed), (1, 9));
    assert_eq!(counters.compressed_bytes, 41 + 9 * 4);
    assert_eq!(far.counters().received, counters);
    // In addition to the packets and the escapes, the line has carried eleven ENDs: one after each
    // of the ten packets, and one before the first, because the line was idle. `escapes` counts
    // only the escaped bytes of the first packet. So the sum is a lower limit, and not the exact
    // number.
    let escapes = packets[0].iter().filter(|&&byte| matches!(byte, 0o300 | 0o333)).count() as u64;
    assert!(counters.line_bytes >= counters.compressed_bytes + 11 + escapes);
    assert_eq!((far.counters().errors, far.counters().tossed), (0, 0));
}

#[test]
fn without_compression_packets_are_sent_whole_and_compressed_ones_are_errors() {
    let plain = SerialConfig { header_compression: false, ..FAST };
    let [mut near, mut far] = SerialLink::pair(&plain).unwrap();
    let packets = [typed(1, 1), typed(1, 2)];
    send(&mut near, &packets).unwrap();
    assert_eq!(carried(&mut near, &mut far, 2), packets);
    assert_eq!(near.counters().sent.compressed_bytes, 82);

    let (line, path) = terminal();
    let mut link = SerialLink::open(&path, &plain).unwrap();
    write(&line, b"\xc0\x75........................................\xc0\x8b123\xc0");
    assert!(received(&mut link).is_empty());
    assert_eq!(link.counters().errors, 2);
}

#[test]
fn ipv6_packets_pass_with_and_without_compression() {
    let mut packet = vec![7; 60];
    packet[0] = 0x60;
    for header_compression in [true, false] {
        let config = SerialConfig { header_compression, ..FAST };
        let [mut near, mut far] = SerialLink::pair(&config).unwrap();
        send(&mut near, [&packet]).unwrap();
        assert_eq!(carried(&mut near, &mut far, 1), [&packet[..]]);
    }
}

#[test]
fn after_damage_packets_are_tossed_until_one_names_its_connection() {
    // The packets are first encoded by another link. The test then writes the encoded packets to
    // the line itself, with damaged bytes between the first packet and the second.
    let (listener, path) = terminal();
    let mut sender = SerialLink::open(&path, &FAST).unwrap();
    let packets = [typed(1, 1), typed(1, 2), typed(1, 3), typed(2, 1), typed(1, 4)];
    let mut lines = Vec::new();
    for packet in &packets {
        send(&mut sender, [packet]).unwrap();
        let mut waiter = Waiter::new().unwrap();
        while sender.queue.length() > 0 {
            waiter.wait(&mut sender, Instant::NEVER).unwrap();
            sender.transmit(0, |_| None).unwrap();
        }
        let mut line = [0; 200];
        let count = rustix::io::read(&listener, &mut line).unwrap();
        lines.push(line[..count].to_vec());
    }
    let (line, path) = terminal();
    let mut link = SerialLink::open(&path, &FAST).unwrap();
    write(&line, &lines[0]);
    assert_eq!(received(&mut link), packets[..1]);
    // These bytes are a damaged packet: an escape byte directly before END is invalid.
    write(&line, b"\xc0\x45\xdb\xc0");
    write(&line, &lines[1]);
    write(&line, &lines[2]);
    assert!(received(&mut link).is_empty());
    assert_eq!((link.counters().errors, link.counters().tossed), (1, 2));
    write(&line, &lines[3]);
    write(&line, &lines[4]);
    let arrived = received(&mut link);
    assert_eq!(arrived.len(), 2, "the last one names its connection");
    assert_eq!(arrived[0], packets[3]);
    assert_ne!(arrived[1], packets[4], "two packets are missing, which the checksum shows");
}

#[test]
fn packets_of_unknown_types_and_impossible_lengths_are_errors() {
    let (line, path) = terminal();
    let mut link = SerialLink::open(&path, &FAST).unwrap();
    write(&line, b"\x10noise\xc0");
    write(&line, &vec![0x45; 3_000]);
    assert!(received(&mut link).is_empty());
    assert_eq!(link.counters().errors, 1);
    write(&line, b"\xc0\x45 is IPv4\xc0");
    assert_eq!(received(&mut link), [b"\x45 is IPv4"]);
    assert_eq!(link.counters().errors, 2, "the longest packet has 1,500 bytes");
}

#[test]
fn a_line_accepts_packets_while_its_queue_has_room() {
    let config = SerialConfig { queue: 296, ..SerialConfig::new(300) };
    let [mut near, _far] = SerialLink::pair(&config).unwrap();
    let offered = std::iter::repeat_n([0x45; 100], 10);
    assert_eq!(send(&mut near, offered.clone()), Ok(3), "101 bytes each, and an END before them");
    assert_eq!(send(&mut near, offered), Ok(0));
    assert!(!near.wants_room(), "the device has room, so the caller must not wait for it");
    assert!(near.next_deadline() < Instant::NEVER);
}

#[test]
fn a_closed_line_is_down() {
    let [mut near, far] = SerialLink::pair(&FAST).unwrap();
    drop(far);
    assert_eq!(near.receive(1, |_| ()), Err(LinkError::Down));
    assert!(near.is_ready() && !near.prepare_to_sleep());
    assert_eq!(near.transmit(1, |_| None), Err(LinkError::Down));
    let (line, path) = terminal();
    let mut link = SerialLink::open(&path, &FAST).unwrap();
    drop(line);
    assert_eq!(link.receive(1, |_| ()), Err(LinkError::Down));
}

#[test]
fn a_terminal_is_raw_and_locked_until_the_link_is_dropped() {
    let (line, path) = terminal();
    let texts = |modes: &Termios| format!("{modes:?}");
    // When the last descriptor of a terminal is closed, the kernel resets its modes. So the test
    // keeps a second descriptor open, to see the modes that the link itself restores.
    let _other = std::fs::File::open(&path).unwrap();
    let before = texts(&tcgetattr(&line).unwrap());
    let link = SerialLink::open(&path, &SerialConfig::new(19_200)).unwrap();
    let modes = tcgetattr(&line).unwrap();
    assert_eq!((modes.output_speed(), modes.input_speed()), (19_200, 19_200));
    assert_ne!(texts(&modes), before);
    let error = SerialLink::open(&path, &FAST).unwrap_err();
    assert_eq!(error, SerialError::Busy { device: path.clone() });
    drop(link);
    assert_eq!(texts(&tcgetattr(&line).unwrap()), before);
    SerialLink::open(&path, &FAST).unwrap();
}

#[test]
fn devices_and_configurations_that_cannot_be_a_line_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let refused = |device: &str, config: &SerialConfig| {
        SerialLink::open(device, config).unwrap_err().to_string()
    };
    for device in [path, "/dev/null", "/tmp"] {
        assert!(refused(device, &FAST).contains("is no terminal"), "{device}");
    }
    assert!(refused("/dev/no-such-tty", &FAST).contains("there is no device"));
    let config = SerialConfig::new(49);
    assert_eq!(refused(path, &config), "a serial line cannot have 49 baud: choose 50 to 4000000");
    let config = SerialConfig { mtu: 87, ..FAST };
    assert!(refused(path, &config).contains("choose 88 to 1500"));
    assert!(SerialLink::pair(&config).is_err());
}
