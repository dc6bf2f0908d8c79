//! Prints the headers of an Ethernet frame.
//!
//! The frame is given as hexadecimal digits; without an argument a SYN is built and dissected.
//!
//! ```sh
//! cargo run -p linerate-wire --example dissect
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_wire::{
    EtherType, EthernetFrame, EthernetHeader, FrameLine, Ipv4Header, Ipv4Packet, Protocol, Segment,
    SeqNum, Sum, TcpFlags, TcpHeader, VlanTags,
};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let frame = match std::env::args().nth(1) {
        Some(digits) => from_hex(&digits).ok_or("use an even number of hexadecimal digits")?,
        None => syn()?,
    };
    println!("{}", FrameLine(&frame));

    let frame = EthernetFrame::parse(&frame)?;
    println!("Ethernet: {} to {}", frame.header.source, frame.header.destination);
    if frame.header.ether_type != EtherType::IPV4 {
        return Ok(());
    }
    let packet = Ipv4Packet::parse(frame.payload)?;
    println!("IPv4: {} to {}", packet.header.source, packet.header.destination);
    if packet.header.protocol == Protocol::TCP {
        let pseudo_header = packet.header.pseudo_header(packet.payload.len());
        TcpHeader::verify_checksum(packet.payload, pseudo_header)?;
        let segment = Segment::parse(packet.payload)?;
        println!("TCP: ports {} to {}", segment.source_port, segment.destination_port);
        println!("     sequence number {}, {} bytes", segment.seq, segment.payload.len());
    }
    Ok(())
}

/// Builds the frame of a SYN.
fn syn() -> Result<Vec<u8>, Box<dyn Error>> {
    let ethernet = EthernetHeader {
        destination: "02:00:00:00:00:02".parse()?,
        source: "02:00:00:00:00:01".parse()?,
        tags: VlanTags::NONE,
        ether_type: EtherType::IPV4,
    };
    let ip = Ipv4Header::new("192.0.2.1".parse()?, "192.0.2.2".parse()?, Protocol::TCP);
    let tcp = TcpHeader {
        source_port: 49_152,
        destination_port: 80,
        seq: SeqNum::new(1_000),
        ack: SeqNum::new(0),
        flags: TcpFlags::SYN,
        window: 65_535,
        urgent: 0,
    };
    let mut frame = vec![0; 14 + 20 + 20];
    let ip_at = ethernet.emit(&mut frame);
    let tcp_at = ip_at + ip.emit(20, &mut frame[ip_at..]);
    let segment = &mut frame[tcp_at..];
    tcp.emit(0, segment);
    // The checksum covers the whole segment, so it is filled in last.
    let (pseudo_header, sum) = (ip.pseudo_header(segment.len()), Sum::of(segment));
    TcpHeader::fill_checksum(segment, pseudo_header, sum);
    Ok(frame)
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
