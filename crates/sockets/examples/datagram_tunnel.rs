//! A tunnel in the manner of WireGuard: the IP packets of two linerate hosts travel in UDP
//! datagrams, which the kernel's sockets carry. Each endpoint of the tunnel exchanges packets with
//! its host through a [`PacketQueue`].
//!
//! ```sh
//! cargo run -p linerate-sockets --example datagram_tunnel
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_link::packet_queue::{PacketQueue, QueueConfig, packet_queue};
use linerate_link::{MonotonicClock, Readiness};
use linerate_sockets::{Net, StackConfig};
use linerate_units::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;

/// The MTU of the tunnel in bytes, as in WireGuard: the 1,500 bytes of Ethernet less the headers of
/// IPv6 (40 bytes), UDP (8 bytes) and WireGuard (32 bytes).
const MTU: usize = 1_420;
/// Length in bytes of the header before each packet. The header contains the packet's number.
const HEADER: usize = 8;

/// Encrypts or decrypts a packet: XORs the packet with a stream of bytes that is derived from the
/// key and the packet's number.
///
/// THIS IS A TOY AND PROTECTS NOTHING: an attacker who knows one packet can compute the key, and
/// changed packets are not detected. A real tunnel uses an authenticated cipher, such as
/// ChaCha20-Poly1305, and refuses packets whose number it has already received.
fn toy_cipher(key: u64, number: u64, packet: &mut [u8]) {
    let mut state = key ^ number;
    for byte in packet {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte ^= state.to_be_bytes()[0];
    }
}

/// One endpoint of a tunnel.
struct Tunnel {
    packets: PacketQueue,
    socket: UdpSocket,
    key: u64,
    /// The number of packets sent so far. Packets are numbered from one, so this is also the number
    /// in the header of the most recent packet.
    sent: u64,
}

impl Tunnel {
    /// Carries packets between the host and the other endpoint, until the host drops its side of
    /// the queue.
    fn run(mut self) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        loop {
            let more = self.send_all()? | self.receive_all()?;
            if more || !self.packets.prepare_to_sleep() {
                continue;
            }
            let (queue, socket) = (self.packets.fd(), self.socket.as_fd());
            let mut fds = [queue, socket].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            // The wait ends after one second at most. So the loop detects that the host has ended,
            // even if no event announces it.
            poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }))?;
            let is_signalled = !fds[0].revents().is_empty();
            self.packets.awake(is_signalled);
            if self.packets.is_closed() {
                return Ok(());
            }
        }
    }

    /// Sends the packets that wait in the host's queue, each in a datagram. Returns whether there
    /// were any.
    fn send_all(&mut self) -> io::Result<bool> {
        let mut datagram = [0; HEADER + MTU];
        let mut any = false;
        while let Some(length) = self.packets.pop(|packet| {
            datagram[HEADER..HEADER + packet.len()].copy_from_slice(packet);
            packet.len()
        }) {
            any = true;
            self.sent += 1;
            datagram[..HEADER].copy_from_slice(&self.sent.to_be_bytes());
            toy_cipher(self.key, self.sent, &mut datagram[HEADER..HEADER + length]);
            match self.socket.send(&datagram[..HEADER + length]) {
                // If the send buffer of the socket is full, the packet is lost, as on any link.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                sent => drop(sent?),
            }
        }
        Ok(any)
    }

    /// Decrypts received packets, and passes them to the host. Returns whether there were any.
    fn receive_all(&mut self) -> io::Result<bool> {
        let mut datagram = [0; HEADER + MTU];
        let mut any = false;
        loop {
            let length = match self.socket.recv(&mut datagram) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(any),
                Err(error) => return Err(error),
            };
            any = true;
            let Some((number, packet)) = datagram[..length].split_first_chunk_mut::<HEADER>()
            else {
                continue;
            };
            toy_cipher(self.key, u64::from_be_bytes(*number), packet);
            // An error means that the host's queue of received packets is full. The queue has then
            // dropped and counted the packet.
            let _ = self.packets.push(packet);
        }
    }
}

/// Starts a host, and a thread that carries the packets of the host over `socket` to and from
/// `peer`.
fn host(address: &str, socket: UdpSocket, peer: SocketAddr) -> Result<Net, Box<dyn Error>> {
    socket.connect(peer)?;
    let (link, packets) = packet_queue(QueueConfig { mtu: MTU, ..QueueConfig::default() })?;
    // Packets in a packet queue have no Ethernet header, so both hosts can have the same MAC
    // address.
    let config = StackConfig::new("02:00:00:00:00:01".parse()?, address.parse()?);
    let net = Net::builder(link, config).start()?;
    let tunnel = Tunnel { packets, socket, key: 0x6c69_6e65_7261_7465, sent: 0 };
    thread::spawn(move || tunnel.run());
    Ok(net)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (left, right) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    let (to_left, to_right) = (left.local_addr()?, right.local_addr()?);
    let server = host("10.9.0.1/24", left, to_right)?;
    let client = host("10.9.0.2/24", right, to_left)?;
    let begun = MonotonicClock.now();
    let listener = server.bind("10.9.0.1:7")?;
    let service = thread::spawn(move || -> io::Result<u64> {
        let (mut stream, _peer) = listener.accept()?;
        io::copy(&mut stream.try_clone()?, &mut stream)
    });
    let mut stream = client.connect("10.9.0.1:7")?;
    let mut writer = stream.try_clone()?;
    let writing = thread::spawn(move || {
        writer.write_all(&[7; 1_000_000])?;
        writer.shutdown(Shutdown::Write)
    });
    let mut echo = Vec::new();
    stream.read_to_end(&mut echo)?;
    writing.join().map_err(|_| "the writer panicked")??;
    let bytes = service.join().map_err(|_| "the service panicked")??;
    let taken = MonotonicClock.now().since(begun);
    println!("{bytes} bytes went there and {} came back in {taken}", echo.len());
    Ok(())
}
