//! Floods of packets that a host refuses. Callgrind counts the instructions that the host executes
//! for each packet.
//!
//! ```sh
//! valgrind --tool=callgrind target/release/examples/refusals syn 20000
//! ```
//!
//! The second argument is the number of packets. Run the program twice, with different numbers.
//! Divide the difference of the two instruction counts by the difference of the numbers. The result
//! is the cost of one packet; the cost of the set-up cancels out. It includes the creation of a
//! response by the host, but there is no link that transmits it.

#![allow(clippy::print_stdout, reason = "the result is the output of this program")]

use linerate_stack::{
    Capabilities, ListenOptions, Medium, Route, RxFrame, Stack, StackConfig, SynCookies,
};
use linerate_units::{Duration, Instant};
use linerate_wire::{
    Ipv4Header, MacAddress, Protocol, SeqNum, Sum, TcpFlags, TcpHeader, TcpOptions, Timestamps,
    UdpHeader,
};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Time between two packets.
const INTERVAL: Duration = Duration::from_micros(10);
/// Number of different packets in a flood. A flood with more packets repeats them.
const FLOOD: u64 = 4_096;
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 2), 9);

type Outcome = Result<u64, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, amount] = &arguments[..] else {
        return Err("usage: refusals syn|ack|random|fragment|datagram AMOUNT".into());
    };
    let amount = amount.parse()?;
    let done = match kind.as_str() {
        "syn" => refuse(&segment(TcpFlags::SYN, SERVER.port()), amount)?,
        "ack" => refuse(&segment(TcpFlags::ACK, 81), amount)?,
        "random" => refuse(&|number| random(number, 400), amount)?,
        "fragment" => refuse(&fragment, amount)?,
        "datagram" => refuse(&datagram, amount)?,
        _ => return Err(format!("there are no packets called {kind}").into()),
    };
    println!("{done}");
    Ok(())
}

/// Passes a flood of `amount` packets to a host, and takes the host's responses from it. The
/// packets belong to no connection. Packet number i is `packet(i)`, and one arrives every 10 µs.
/// The listener answers SYNs with cookies.
fn refuse(packet: &dyn Fn(u64) -> Vec<u8>, amount: u64) -> Outcome {
    let mut config = StackConfig::new(MacAddress::ZERO, "192.0.2.2/24".parse()?);
    config.routes.push(Route::direct("0.0.0.0/0".parse()?));
    let mut stack = Stack::new(config, [2; 32]);
    stack.attach(Capabilities::new(Medium::Ip, 1_500));
    let options = ListenOptions { syn_cookies: SynCookies::Always, ..ListenOptions::default() };
    stack.tcp_listen(SERVER, &options)?;
    // All different packets are created before the loop. So the cost of creating them does not
    // depend on `amount`, and cancels out.
    let packets: Vec<_> = (0..FLOOD).map(packet).collect();
    let (mut now, mut frame) = (Instant::ZERO, [0; 1_500]);
    for packet in packets.iter().cycle().take(usize::try_from(amount)?) {
        now += INTERVAL;
        stack.handle_frame(now, RxFrame::plain(packet, now));
        while stack.poll_transmit(now, &mut frame).is_some() {}
    }
    Ok(amount)
}

/// Returns the source address and port of packet `number` of a flood.
fn forged(number: u64) -> SocketAddrV4 {
    let [.., a, b, c] = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(198, 51, a, b), 1_024 + u16::from(c))
}

fn packet(number: u64, protocol: Protocol, write: impl FnOnce(Ipv4Header) -> Vec<u8>) -> Vec<u8> {
    let header = Ipv4Header::new(*forged(number).ip(), *SERVER.ip(), protocol);
    let payload = write(header);
    let mut packet = vec![0; Ipv4Header::LENGTH];
    header.emit(payload.len(), &mut packet);
    packet.extend_from_slice(&payload);
    packet
}

fn segment(flags: TcpFlags, port: u16) -> impl Fn(u64) -> Vec<u8> {
    move |number| {
        packet(number, Protocol::TCP, |header| {
            let mut bytes = vec![0; TcpHeader::MAX_LENGTH];
            let options = TcpOptions {
                mss: Some(1_460),
                window_scale: Some(7),
                sack_permitted: true,
                timestamps: Some(Timestamps { value: 1, echo: 0 }),
                ..TcpOptions::default()
            };
            let length = options.emit(&mut bytes[TcpHeader::LENGTH..]);
            let (source_port, seq) = (forged(number).port(), SeqNum::new(7));
            let header_of_segment = TcpHeader {
                source_port,
                destination_port: port,
                seq,
                flags,
                ..TcpHeader::default()
            };
            header_of_segment.emit(length, &mut bytes);
            bytes.truncate(TcpHeader::LENGTH + length);
            let sum = Sum::of(&bytes);
            TcpHeader::fill_checksum(
                &mut bytes,
                header.pseudo_header(TcpHeader::LENGTH + length),
                sum,
            );
            bytes
        })
    }
}

fn random(number: u64, length: u64) -> Vec<u8> {
    let byte =
        |at: u64| (number * length + at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
    (0..length).map(byte).collect()
}

fn fragment(number: u64) -> Vec<u8> {
    let mut packet = packet(number, Protocol::UDP, |_| random(number, 1_480));
    // Makes the packet a first fragment: sets the flag "more fragments", and the offset 0. The
    // other fragments of the datagram are never sent.
    packet[6..8].copy_from_slice(&[0x20, 0]);
    packet[10..12].fill(0);
    let checksum = Sum::of(&packet[..Ipv4Header::LENGTH]).finish();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

fn datagram(number: u64) -> Vec<u8> {
    packet(number, Protocol::UDP, |header| {
        let mut bytes = vec![0; UdpHeader::LENGTH];
        bytes.extend_from_slice(&random(number, 400));
        let ports = UdpHeader { source_port: forged(number).port(), destination_port: 81 };
        ports.emit(400, &mut bytes);
        let (pseudo, sum) = (header.pseudo_header(bytes.len()), Sum::of(&bytes));
        UdpHeader::fill_checksum(&mut bytes, pseudo, sum);
        bytes
    })
}
