//! What the kernel says of one of its own TCP sockets, and the options of it that nothing else sets.
//!
//! The laboratory measures the kernel's TCP beside ours. This file only asks and sets; what the
//! answers mean is the laboratory's business.

use crate::sys::socket_option;
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;

/// `SO_BUF_LOCK` of <asm-generic/socket.h>, since Linux 5.14.
const SO_BUF_LOCK: c_int = 72;
/// `SO_MEMINFO` of <asm-generic/socket.h>, since Linux 4.12.
const SO_MEMINFO: c_int = 55;

/// The answer to `TCP_INFO`. Kernels differ in how much of it they fill: a field that this one does
/// not know is absent, never zero.
#[derive(Clone, Debug)]
pub struct TcpInfo {
    bytes: [u8; 512],
    length: usize,
}

impl TcpInfo {
    /// What the kernel says of `socket` now.
    ///
    /// # Errors
    /// The kernel's word if `socket` is no TCP socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; 512];
        let length = socket_option::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(Self { bytes, length })
    }

    /// The field of this name, without its prefix `tcpi_`; times in microseconds.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<u64> {
        match name {
            "snd_wscale" => self.shifts().map(|(sent, _)| sent),
            "rcv_wscale" => self.shifts().map(|(_, received)| received),
            _ => FIELDS.iter().find(|field| field.name == name).and_then(|field| self.read(field)),
        }
    }

    /// The shifts of the windows heard and announced: two bit fields of four bits, in the order that the
    /// compiler of the kernel gives them.
    fn shifts(&self) -> Option<(u64, u64)> {
        let byte = u64::from(*self.bytes[..self.length].get(6)?);
        let (low, high) = (byte & 0xf, byte >> 4);
        Some(if cfg!(target_endian = "little") { (low, high) } else { (high, low) })
    }

    /// Every field that this kernel fills, by its name without the prefix `tcpi_`.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FIELDS.iter().filter_map(|field| Some((field.name, self.read(field)?)))
    }

    fn read(&self, field: &Field) -> Option<u64> {
        let filled = &self.bytes[..self.length];
        let raw = filled.get(field.offset..field.offset + field.width)?;
        let mut value = [0; 8];
        if cfg!(target_endian = "little") {
            value[..field.width].copy_from_slice(raw);
        } else {
            value[8 - field.width..].copy_from_slice(raw);
        }
        Some(u64::from_ne_bytes(value))
    }
}

/// Where a field of `struct tcp_info` lies.
#[derive(Debug)]
struct Field {
    name: &'static str,
    offset: usize,
    width: usize,
}

const fn field(name: &'static str, offset: usize, width: usize) -> Field {
    Field { name, offset, width }
}

/// `struct tcp_info` of <linux/tcp.h>: it only ever grows at its end, so the offsets are for good.
/// Bit fields and what the kernel no longer remembers are left out of the table.
const FIELDS: &[Field] = &[
    field("state", 0, 1),
    field("ca_state", 1, 1),
    field("retransmits", 2, 1),
    field("probes", 3, 1),
    field("backoff", 4, 1),
    field("options", 5, 1),
    field("rto", 8, 4),
    field("ato", 12, 4),
    field("snd_mss", 16, 4),
    field("rcv_mss", 20, 4),
    field("unacked", 24, 4),
    field("sacked", 28, 4),
    field("lost", 32, 4),
    field("retrans", 36, 4),
    field("last_data_sent", 44, 4),
    field("last_data_recv", 52, 4),
    field("last_ack_recv", 56, 4),
    field("pmtu", 60, 4),
    field("rcv_ssthresh", 64, 4),
    field("rtt", 68, 4),
    field("rttvar", 72, 4),
    field("snd_ssthresh", 76, 4),
    field("snd_cwnd", 80, 4),
    field("advmss", 84, 4),
    field("reordering", 88, 4),
    field("rcv_rtt", 92, 4),
    field("rcv_space", 96, 4),
    field("total_retrans", 100, 4),
    field("pacing_rate", 104, 8),
    field("bytes_acked", 120, 8),
    field("bytes_received", 128, 8),
    field("segs_out", 136, 4),
    field("segs_in", 140, 4),
    field("notsent_bytes", 144, 4),
    field("min_rtt", 148, 4),
    field("data_segs_in", 152, 4),
    field("data_segs_out", 156, 4),
    field("delivery_rate", 160, 8),
    field("busy_time", 168, 8),
    field("rwnd_limited", 176, 8),
    field("sndbuf_limited", 184, 8),
    field("delivered", 192, 4),
    field("delivered_ce", 196, 4),
    field("bytes_sent", 200, 8),
    field("bytes_retrans", 208, 8),
    field("dsack_dups", 216, 4),
    field("reord_seen", 220, 4),
    field("rcv_ooopack", 224, 4),
    field("snd_wnd", 228, 4),
    field("rcv_wnd", 232, 4),
];

/// What a socket's two buffers hold at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of kernel memory that the send queue takes (`SK_MEMINFO_WMEM_QUEUED`): more than its
    /// data, because the kernel counts the whole of every buffer.
    pub send_queue: u64,
    /// Bytes of kernel memory that the receive queue takes (`SK_MEMINFO_RMEM_ALLOC`).
    pub receive_queue: u64,
    /// Packets that the socket dropped for want of room (`SK_MEMINFO_DROPS`).
    pub drops: u64,
}

/// What the buffers of `socket` hold at this moment.
///
/// # Errors
/// The kernel's word; kernels before 4.12 do not know the question.
pub fn memory(socket: impl AsFd) -> io::Result<Memory> {
    let mut answer = [0; 9 * 4];
    let length = socket_option::get(socket, libc::SOL_SOCKET, SO_MEMINFO, &mut answer)?;
    let word = |index: usize| {
        let bytes = answer[..length].get(index * 4..index * 4 + 4);
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, |bytes| u64::from(u32::from_ne_bytes(bytes)))
    };
    Ok(Memory { receive_queue: word(0), send_queue: word(5), drops: word(8) })
}

/// Data bytes that `socket` has taken from its application and the peer has not acknowledged
/// (`SIOCOUTQ`).
///
/// # Errors
/// The kernel's word if `socket` is no connected TCP socket.
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<u64> {
    socket_option::queued_bytes(socket, socket_option::Queue::Unacknowledged)
}

/// Sets the largest segment that `socket` announces and sends (`TCP_MAXSEG`: the MSS option's value,
/// TCP options not taken off). Ask before connecting or listening; a listener hands it to what it accepts.
///
/// # Errors
/// The kernel's word: it takes 88 to 32,767.
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    socket_option::set_integer(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, c_int::from(bytes))
}

/// The payload of a full segment on `socket` (`TCP_MAXSEG`): what was announced before it is
/// connected, what the connection uses after.
///
/// # Errors
/// The kernel's word if `socket` is no TCP socket.
pub fn max_segment(socket: impl AsFd) -> io::Result<u32> {
    let bytes = socket_option::get_integer(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG)?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Lets the kernel tune both buffers of `socket` again after somebody has set them (`SO_BUF_LOCK`).
///
/// # Errors
/// The kernel's word; kernels before 5.14 keep a buffer that was set once as it is.
pub fn unlock_buffers(socket: impl AsFd) -> io::Result<()> {
    socket_option::set_integer(socket, libc::SOL_SOCKET, SO_BUF_LOCK, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn both_ends_of_a_connection_agree_about_the_bytes_that_crossed() {
        let (mut near, mut far) = pair();
        near.write_all(&[7; 5_000]).unwrap();
        far.read_exact(&mut [0; 5_000]).unwrap();
        let (sent, received) = (TcpInfo::of(&near).unwrap(), TcpInfo::of(&far).unwrap());
        assert_eq!(sent.field("bytes_sent"), Some(5_000));
        assert_eq!(received.field("bytes_received"), Some(5_000));
        assert_eq!(sent.field("state"), Some(1), "TCP_ESTABLISHED");
        assert!(sent.field("snd_mss").unwrap() > 500);
        assert_eq!(sent.field("no such field"), None);
    }

    #[test]
    fn what_nobody_reads_is_counted_in_the_queues() {
        let (mut near, far) = pair();
        near.write_all(&[7; 5_000]).unwrap();
        // In this order: what is acknowledged by the first question has arrived by the second.
        let queued = unacknowledged_bytes(&near).unwrap() + memory(&far).unwrap().receive_queue;
        assert!(queued >= 5_000);
        assert_eq!(memory(&far).unwrap().drops, 0);
    }

    #[test]
    fn a_field_that_the_kernel_has_not_filled_whole_is_absent() {
        let filled = |length| TcpInfo { bytes: [0x21; 512], length };
        assert_eq!((filled(59).field("last_ack_recv"), filled(60).field("pmtu")), (None, None));
        assert_eq!(filled(60).field("last_ack_recv"), Some(0x2121_2121));
        assert_eq!((filled(6).field("snd_wscale"), filled(6).field("rcv_wscale")), (None, None));
        let shifts = ["snd_wscale", "rcv_wscale"].map(|name| filled(7).field(name).unwrap());
        assert_eq!(shifts, if cfg!(target_endian = "little") { [1, 2] } else { [2, 1] });
        assert!(filled(60).fields().all(|(name, _)| name != "pmtu"));
    }

    #[test]
    fn what_the_peer_has_no_room_for_waits_in_the_queue_of_the_sender() {
        let (mut near, _far) = pair();
        near.set_nonblocking(true).unwrap();
        while near.write(&[7; 10_000]).is_ok() {}
        assert!(memory(&near).unwrap().send_queue > 10_000);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..2_000 {
            socket.send_to(&[7; 1_000], socket.local_addr().unwrap()).unwrap();
        }
        assert!(memory(&socket).unwrap().drops > 0);
    }

    #[test]
    fn a_largest_segment_set_before_the_connection_holds_for_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_max_segment(&listener, 1_460).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!((500..=1_460).contains(&max_segment(&near).unwrap()));
        assert!(set_max_segment(&near, 1).is_err());
        unlock_buffers(&near).unwrap();
    }

    #[test]
    fn a_socket_that_is_no_tcp_has_no_tcp_info() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(TcpInfo::of(&one).is_err());
        assert!(max_segment(&one).is_err());
        assert!(unacknowledged_bytes(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
