//! A model of NFS over UDP. It reproduces only the load on a wire and on a NIC. A client reads
//! blocks of a file; a server answers each request with one datagram. linerate's host sends the
//! datagram in fragments and reassembles them, so the loss of one fragment loses the whole answer.

mod client;
mod server;

pub(crate) use client::{NfsClient, NfsClientParameters};
pub(crate) use server::{NfsServer, NfsServerParameters};

/// UDP port of the server (RFC 1094).
const SERVER_PORT: u16 = 2_049;
/// UDP port of the client: a privileged port, below 1,024.
const CLIENT_PORT: u16 = 1_023;
/// Length of the RPC and NFS headers in bytes. A request has only these headers; an answer has data
/// after them.
const HEADERS: usize = 100;

/// The numbers at the start of a datagram, in place of the RPC header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    /// Number of the request. The answer repeats it.
    call: u32,
    /// Number of data bytes that the request reads.
    data: u32,
}

impl Numbers {
    /// Returns a datagram with these numbers and `data` bytes of data.
    fn datagram(self, data: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADERS + data];
        bytes[..4].copy_from_slice(&self.call.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.data.to_be_bytes());
        bytes
    }

    /// Parses a datagram. Returns its numbers and its number of data bytes, or `None` if it is too
    /// short.
    fn read(datagram: &[u8]) -> Option<(Self, usize)> {
        let data = datagram.len().checked_sub(HEADERS)?;
        let (words, _) = datagram.as_chunks::<4>();
        let [call, asked] = [words[0], words[1]].map(u32::from_be_bytes);
        Some((Self { call, data: asked }, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_as_written_and_short_datagrams_are_refused() {
        let numbers = Numbers { call: 7, data: 8_192 };
        assert_eq!(Numbers::read(&numbers.datagram(20)), Some((numbers, 20)));
        assert_eq!(Numbers::read(&[0; HEADERS - 1]), None);
    }
}
