//! Tests of `linerate dump` with pcap files, intact and damaged, and with closed pipes.

use crate::support::{finished, linerate, run};
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

/// Returns a little-endian pcap file with `count` copies of an ARP request, a millisecond apart.
fn capture(count: u32) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1]);
    frame.extend([0, 0, 0, 0, 0, 0, 192, 0, 2, 2]);
    let length = u32::try_from(frame.len()).unwrap();
    for index in 0..count {
        for word in [1_000 + index / 1_000, index % 1_000 * 1_000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame);
    }
    file
}

fn kept(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("capture");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn through_standard_input(bytes: &[u8]) -> Output {
    let mut command = linerate(&["dump", "-"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn each_packet_is_a_line_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "  0.000000000   ARP who-has 192.0.2.2 tell 192.0.2.1\n  0.001000000   ARP \
                      who-has 192.0.2.2 tell 192.0.2.1\n";
    assert_eq!(
        run(&["dump", &kept(folder.path(), &capture(2))]),
        (0, expected.into(), String::new())
    );
    assert_eq!(finished(&through_standard_input(&capture(2))), (0, expected.into(), String::new()));
}

/// Returns a little-endian pcap file of this link type with an empty UDP datagram over IPv6.
fn raw_capture(link_type: u32) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    for host in [1, 2] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend([0, 53, 0, 54, 0, 8, 0xa3, 0xfe]);
    let length = u32::try_from(packet.len()).unwrap();
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type];
    let words = header.into_iter().chain([1_000, 0, length, length]);
    words.flat_map(u32::to_le_bytes).chain(packet).collect()
}

#[test]
fn ipv6_is_printed_in_captures_without_a_link_header() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "  0.000000000   IP6 2001:db8::1.53 > 2001:db8::2.54: UDP, length 0\n";
    // Numbers of the link types for IP packets without a link header: LINKTYPE_RAW (101),
    // LINKTYPE_IPV6 (229), and DLT_RAW of most systems (12) and of OpenBSD (14).
    for link_type in [101, 229, 12, 14] {
        let file = kept(folder.path(), &raw_capture(link_type));
        assert_eq!(run(&["dump", &file]), (0, expected.into(), String::new()), "{link_type}");
    }
}

#[test]
fn a_damaged_capture_is_printed_up_to_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let whole = capture(3);
    let (code, stdout, stderr) = run(&["dump", &kept(folder.path(), &whole[..whole.len() - 1])]);
    assert_eq!((code, stdout.lines().count()), (2, 2));
    assert!(stderr.contains("cut short") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn a_file_that_is_not_a_capture_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, expected_text) in
        [(&b""[..], "is empty"), (b"#!/bin/sh\n", "neither pcapng nor pcap")]
    {
        let (code, stdout, stderr) = run(&["dump", &kept(folder.path(), bytes)]);
        assert!(code == 2 && stdout.is_empty() && stderr.contains(expected_text), "{stderr}");
    }
    let (code, _, stderr) = run(&["dump", "/no/such/file"]);
    assert!(code == 2 && stderr.contains("/no/such/file: the file cannot be opened"), "{stderr}");
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = kept(folder.path(), &capture(50_000));
    let mut child =
        linerate(&["dump", &file]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let (code, _, stderr) = finished(&child.wait_with_output().unwrap());
    assert_eq!((code, stderr.as_str()), (0, ""));
}
