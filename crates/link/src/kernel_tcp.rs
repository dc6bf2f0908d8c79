//! Queries the kernel's TCP sockets, and sets socket options for which no safe library has a
//! function.
//!
//! `linerate` measures transfers with its own TCP and with that of the kernel. The values that this
//! module returns serve to compare the two.

use crate::sys::socket_option;
use std::ffi::c_int;
use std::io;
use std::os::fd::AsFd;

/// Socket option `SO_BUF_LOCK` of <asm-generic/socket.h>, since Linux 5.14.
const SO_BUF_LOCK: c_int = 72;
/// Socket option `SO_MEMINFO` of <asm-generic/socket.h>, since Linux 4.12.
const SO_MEMINFO: c_int = 55;

/// The kernel's reply to `TCP_INFO`. Older kernels provide fewer fields than newer ones. A field
/// that the running kernel does not provide is absent, and not zero.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TcpInfo {
    bytes: [u8; 512],
    length: usize,
}

impl TcpInfo {
    /// Queries the kernel for the present values of `socket`.
    ///
    /// # Errors
    /// The error of the kernel if `socket` is not a TCP socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; 512];
        let length = socket_option::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(Self { bytes, length })
    }

    /// Returns the value of the field that is called `tcpi_` and `name` in `struct tcp_info`. Times
    /// are in microseconds, except that `last_*` and `total_rto_time` are in milliseconds. Returns
    /// `None` if the kernel does not provide the field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<u64> {
        match name {
            "snd_wscale" => self.shifts().map(|(sent, _)| sent),
            "rcv_wscale" => self.shifts().map(|(_, received)| received),
            "delivery_rate_app_limited" => self.is_app_limited().map(u64::from),
            _ => FIELDS.iter().find(|field| field.name == name).and_then(|field| self.read(field)),
        }
    }

    /// Returns two window scale shifts: that of the peer (`tcpi_snd_wscale`), and that of this
    /// endpoint (`tcpi_rcv_wscale`). They are bit fields of four bits, whose order depends on the C
    /// ABI.
    fn shifts(&self) -> Option<(u64, u64)> {
        let byte = u64::from(*self.bytes[..self.length].get(6)?);
        let (low, high) = (byte & 0xf, byte >> 4);
        Some(if cfg!(target_endian = "little") { (low, high) } else { (high, low) })
    }

    /// Returns whether the delivery rate was limited by the application. The flag is the first bit
    /// of a byte: the lowest bit on little-endian machines, the highest bit on others.
    fn is_app_limited(&self) -> Option<bool> {
        let byte = *self.bytes[..self.length].get(7)?;
        Some(byte & if cfg!(target_endian = "little") { 1 } else { 0x80 } != 0)
    }

    /// Returns the names and values of all fields that the running kernel provides. The names are
    /// those of `struct tcp_info` without the prefix `tcpi_`.
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

/// The position of a field in `struct tcp_info`.
#[derive(Debug)]
struct Field {
    name: &'static str,
    offset: usize,
    width: usize,
}

const fn field(name: &'static str, offset: usize, width: usize) -> Field {
    Field { name, offset, width }
}

/// The fields of `struct tcp_info` in <linux/tcp.h>. New fields are only appended, so the offsets
/// are stable. Bit fields and fields that the kernel no longer fills are omitted.
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
    field("max_pacing_rate", 112, 8),
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
    field("rehash", 236, 4),
    field("total_rto", 240, 2),
    field("total_rto_recoveries", 242, 2),
    field("total_rto_time", 244, 4),
];

/// The memory that the buffers of a socket occupy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of kernel memory in the send queue (`SK_MEMINFO_WMEM_QUEUED`). The kernel counts whole
    /// buffers, so this exceeds the number of data bytes in the queue.
    pub send_queue: u64,
    /// Bytes of kernel memory in the receive queue (`SK_MEMINFO_RMEM_ALLOC`).
    pub receive_queue: u64,
    /// Number of received packets that the socket dropped (`SK_MEMINFO_DROPS`). TCP sockets drop
    /// segments for lack of memory, and segments that are duplicates or not acceptable.
    pub drops: u64,
}

/// Returns the memory that the buffers of `socket` occupy.
///
/// # Errors
/// The error of the kernel; kernels before 4.12 do not support the query.
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

/// Returns the number of bytes that were written to `socket` and not yet acknowledged by the peer
/// (`SIOCOUTQ`).
///
/// # Errors
/// The error of the kernel if `socket` is not a connected TCP socket.
pub fn unacknowledged_bytes(socket: impl AsFd) -> io::Result<u64> {
    socket_option::queued_bytes(socket, socket_option::Queue::Unacknowledged)
}

/// Sets the maximum MSS (`TCP_MAXSEG`): `socket` announces it, and sends no larger segments. The
/// limit applies to the data and the TCP options of a segment together. Must be called before the
/// socket connects or listens. Accepted sockets inherit the MSS of the listener.
///
/// # Errors
/// The error of the kernel, which accepts 88 to 32,767 bytes.
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    socket_option::set_integer(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, c_int::from(bytes))
}

/// Returns the number of data bytes in a full segment on `socket` (`TCP_MAXSEG`). Before the
/// connection is established, returns the MSS that the socket will announce.
///
/// # Errors
/// The error of the kernel if `socket` is not a TCP socket.
pub fn max_segment(socket: impl AsFd) -> io::Result<u32> {
    let bytes = socket_option::get_integer(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG)?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Limits the rate at which `socket` sends, in bytes per second (`SO_MAX_PACING_RATE`). If the
/// queue discipline of the interface paces no segments, the kernel's TCP does so.
///
/// # Errors
/// The error of the kernel.
pub fn set_max_pacing_rate(socket: impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    let value = bytes_per_second.to_ne_bytes();
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &value)
}

/// Lets the kernel adjust the sizes of both buffers of `socket` (`SO_BUF_LOCK`). It does so by
/// default, but no longer adjusts a buffer whose size has been set.
///
/// # Errors
/// The error of the kernel. Kernels before 5.14 do not support the option, so a buffer whose size
/// was set then keeps this size.
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
    fn both_ends_agree_about_the_transferred_bytes() {
        let (mut near, mut far) = pair();
        near.write_all(&[7; 5_000]).unwrap();
        far.read_exact(&mut [0; 5_000]).unwrap();
        let (sent, received) = (TcpInfo::of(&near).unwrap(), TcpInfo::of(&far).unwrap());
        assert_eq!(sent.field("bytes_sent"), Some(5_000));
        assert_eq!(received.field("bytes_received"), Some(5_000));
        assert_eq!(sent.field("state"), Some(1), "TCP_ESTABLISHED");
        assert!(sent.field("delivery_rate_app_limited").is_some_and(|bit| bit <= 1));
        assert!(sent.field("snd_mss").unwrap() > 500);
        assert_eq!(sent.field("no such field"), None);
    }

    #[test]
    fn unread_bytes_are_counted_in_the_queues() {
        let (mut near, far) = pair();
        near.write_all(&[7; 5_000]).unwrap();
        // Between the two queries, bytes can move from the queue of the sender (`near`) to that of
        // the receiver. The sender is queried first, so such bytes are counted twice. If the
        // receiver were queried first, they would be counted in neither queue, and the assertion
        // could fail.
        let queued = unacknowledged_bytes(&near).unwrap() + memory(&far).unwrap().receive_queue;
        assert!(queued >= 5_000);
        assert_eq!(memory(&far).unwrap().drops, 0);
    }

    #[test]
    fn a_partly_filled_field_is_absent() {
        let filled = |length| TcpInfo { bytes: [0x21; 512], length };
        assert_eq!((filled(59).field("last_ack_recv"), filled(60).field("pmtu")), (None, None));
        assert_eq!(filled(60).field("last_ack_recv"), Some(0x2121_2121));
        assert_eq!((filled(6).field("snd_wscale"), filled(6).field("rcv_wscale")), (None, None));
        let shifts = ["snd_wscale", "rcv_wscale"].map(|name| filled(7).field(name).unwrap());
        assert_eq!(shifts, if cfg!(target_endian = "little") { [1, 2] } else { [2, 1] });
        assert!(filled(60).fields().all(|(name, _)| name != "pmtu"));
    }

    #[test]
    fn data_without_room_at_the_peer_stays_in_the_send_queue() {
        let (mut near, _far) = pair();
        near.set_nonblocking(true).unwrap();
        while near.write(&[7; 10_000]).is_ok() {}
        assert!(memory(&near).unwrap().send_queue > 10_000);
    }

    #[test]
    fn dropped_packets_are_counted() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..2_000 {
            socket.send_to(&[7; 1_000], socket.local_addr().unwrap()).unwrap();
        }
        assert!(memory(&socket).unwrap().drops > 0);
    }

    #[test]
    fn a_maximum_segment_set_before_connecting_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_max_segment(&listener, 1_460).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!((500..=1_460).contains(&max_segment(&near).unwrap()));
        assert!(set_max_segment(&near, 1).is_err());
        unlock_buffers(&near).unwrap();
    }

    #[test]
    fn the_pacing_rate_is_limited() {
        let (near, _far) = pair();
        set_max_pacing_rate(&near, 1_000_000).unwrap();
        assert_eq!(TcpInfo::of(&near).unwrap().field("max_pacing_rate"), Some(1_000_000));
    }

    #[test]
    fn sockets_of_other_protocols_have_no_tcp_info() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(TcpInfo::of(&one).is_err());
        assert!(max_segment(&one).is_err());
        assert!(unacknowledged_bytes(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
