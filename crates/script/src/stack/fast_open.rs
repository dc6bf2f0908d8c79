//! TCP Fast Open with the interface of BSD sockets (RFC 7413 appendix A). The first write on a
//! socket can open its connection. A listener limits the number of connections that Fast Open has
//! opened and whose handshake is not complete.

use super::StackMachine;
use super::calls::DONT_WAIT;
use super::errors::errno;
use super::sockets::Socket;
use crate::machine::Answer;
use crate::syntax::{Errno, Transfer};
use linerate_stack::{FastOpenKeys, ListenOptions};
use std::net::SocketAddr;

/// The settings of the sysctl `net.ipv4.tcp_fastopen`. The default is that of Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastOpenRules {
    /// Whether outgoing connections may use Fast Open (`MSG_FASTOPEN`).
    client: bool,
    /// Whether listeners with the option `TCP_FASTOPEN` may use Fast Open.
    server: bool,
    /// Whether all listeners may use Fast Open, limited by their backlog.
    any_listener: bool,
}

impl Default for FastOpenRules {
    fn default() -> Self {
        Self { client: true, server: false, any_listener: false }
    }
}

impl FastOpenRules {
    /// Returns the maximum number of pending Fast Open connections of a listener. This is `wanted`,
    /// the value of its `TCP_FASTOPEN` option. If it is zero and all listeners may use Fast Open,
    /// the maximum is `backlog`. Returns `None` if the listener must not use Fast Open.
    pub(super) fn of_listener(self, wanted: usize, backlog: usize) -> Option<usize> {
        let wanted = if wanted == 0 && self.any_listener { backlog } else { wanted };
        (self.server && wanted > 0).then_some(wanted)
    }
}

/// Parses the value of `net.ipv4.tcp_fastopen`. Bits that have no meaning in Linux are ignored.
///
/// # Errors
/// The part of the value that is not supported.
pub(super) fn rules(value: &str) -> Result<FastOpenRules, String> {
    const WITHOUT_COOKIE: u32 = 4 | 0x200;
    let bits = match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => value.parse(),
    };
    let bits = bits.map_err(|_| "a number is expected".to_owned())?;
    if bits & WITHOUT_COOKIE != 0 {
        return Err(
            "data on a SYN without a cookie is not supported (bits 0x4 and 0x200)".to_owned()
        );
    }
    Ok(FastOpenRules {
        client: bits & 1 != 0,
        server: bits & 2 != 0,
        any_listener: bits & 0x400 != 0,
    })
}

/// Parses `net.ipv4.tcp_fastopen_key`: the current key, and after a comma the previous key. Returns
/// `None` if a key is invalid.
pub(super) fn keys(value: &str) -> Option<FastOpenKeys> {
    let (current, previous) = match value.split_once(',') {
        Some((current, previous)) => (current, Some(key(previous)?)),
        None => (value, None),
    };
    Some(FastOpenKeys { current: key(current)?, previous })
}

/// Parses a key such as `00112233-44556677-8899aabb-ccddeeff`, which has four words. Linux stores
/// each word in little-endian order. Returns `None` for any other text.
fn key(text: &str) -> Option<[u8; 16]> {
    let words: Option<Vec<[u8; 4]>> = text
        .split('-')
        .map(|word| u32::from_str_radix(word, 16).ok().map(u32::to_le_bytes))
        .collect();
    words?.concat().try_into().ok()
}

impl StackMachine {
    /// Returns the reason why the Fast Open limit of a socket cannot be set now, if it cannot.
    pub(super) fn fast_open_obstacle(&self, fd: i32) -> Option<String> {
        let Some(Socket::Listener { handle, .. }) = self.sockets.get(fd) else { return None };
        let statistics = self.host.stack().tcp_listen_statistics(*handle).ok()?;
        (statistics.syns_kept > 0 || statistics.cookies_sent > 0).then(|| {
            "TCP_FASTOPEN of a listener that a SYN has come to: set it before the first one"
                .to_owned()
        })
    }

    /// Sets the Fast Open limit of a listener to `wanted`. The listener is closed and created anew.
    /// That has no other effect, because [`StackMachine::fast_open_obstacle`] refuses the option
    /// once a SYN has arrived.
    pub(super) fn set_fast_open(&mut self, fd: i32, wanted: usize) -> Result<(), Errno> {
        let Some(Socket::Listener { handle, options, .. }) = self.sockets.get(fd) else {
            return Err(Errno::INVAL);
        };
        let fast_open = self.fast_open.of_listener(wanted, options.backlog);
        let (handle, options) = (*handle, ListenOptions { fast_open, ..**options });
        let stack = self.host.stack_mut();
        let local = stack.tcp_listen_addr(handle).map_err(errno)?;
        stack.tcp_listen_close(self.now, handle).map_err(errno)?;
        self.listen_at(fd, local, &options)
    }

    /// Executes a write with `MSG_FASTOPEN`: opens the connection, with as much of the data as the
    /// SYN can carry. Returns `None` if the call must wait. A blocking call waits until the peer
    /// has answered, and then writes the rest of the data.
    pub(super) fn write_fast(&mut self, transfer: &Transfer) -> Option<Result<Answer, Errno>> {
        if !self.fast_open.client {
            return Some(Err(Errno::OPNOTSUPP));
        }
        let waits = !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0;
        match self.sockets.get(transfer.fd) {
            None => Some(Err(Errno::BADF)),
            Some(Socket::Epoll(_)) => Some(Err(Errno::NOTSOCK)),
            Some(Socket::Datagrams { .. }) => Some(Err(Errno::OPNOTSUPP)),
            Some(Socket::Listener { .. }) => Some(Err(Errno::ISCONN)),
            Some(Socket::Unconnected { .. }) => match self.open_fast(transfer) {
                Ok(_) if waits => None,
                Ok(0) => Some(Err(Errno::INPROGRESS)),
                Ok(written) => Some(Ok(Answer::of(i64::try_from(written).unwrap_or(i64::MAX)))),
                Err(errno) => Some(Err(errno)),
            },
            Some(Socket::Connection { .. }) => {
                let goes_on = self.waiting.is_some();
                match self.connect_again(transfer.fd, waits)? {
                    Err(errno) if errno != Errno::ISCONN || !goes_on => Some(Err(errno)),
                    _ => self.write(transfer),
                }
            }
        }
    }

    /// Returns whether `connect` on this socket postpones the SYN until the first write
    /// (`TCP_FASTOPEN_CONNECT`).
    pub(super) fn waits_for_write(&self, fd: i32) -> bool {
        let wants = matches!(
            self.sockets.get(fd),
            Some(Socket::Unconnected { options, .. }) if options.fast_connect
        );
        wants && self.fast_open.client
    }

    /// Returns the address of a `connect` that waits for the first write; `None` if none waits.
    pub(super) fn deferred(&self, fd: i32) -> Option<SocketAddr> {
        match self.sockets.get(fd)? {
            Socket::Unconnected { options, .. } => options.deferred,
            _ => None,
        }
    }

    /// Opens a connection whose SYN is to carry the data of the first write. Returns true if the
    /// host has a cookie of the peer, so that the SYN waits for that write. Returns false if it has
    /// none: the SYN then requests a cookie, and is sent immediately.
    pub(super) fn open_at_write(
        &mut self,
        fd: i32,
        address: Option<SocketAddr>,
    ) -> Result<bool, Errno> {
        let Some(Socket::Unconnected { config, bound, options }) = self.sockets.get(fd) else {
            return Err(Errno::BADF);
        };
        let (config, bound, mut options) = (config.clone(), *bound, *options);
        self.open(fd, address, true)?;
        if self.connection(fd)?.room_on_syn() == 0 {
            return Ok(false);
        }
        // There is room for data on the SYN, so the host has a cookie of the peer. The SYN must
        // wait for the first write, but a connection that is open would send it at once. So the
        // connection is aborted before it sends anything. The first write opens a new one.
        let handle = self.handle(fd)?;
        self.host.stack_mut().tcp_abort(self.now, handle).map_err(errno)?;
        let usual = SocketAddr::new(self.remote, self.ports.1);
        options.deferred = Some(address.unwrap_or(usual));
        self.sockets.replace(fd, Socket::Unconnected { config, bound, options });
        Ok(true)
    }

    /// Opens a connection, and writes as much of the transfer's data as its SYN can carry. Returns
    /// the number of these bytes.
    fn open_fast(&mut self, transfer: &Transfer) -> Result<usize, Errno> {
        self.open(transfer.fd, transfer.address, true)?;
        let handle = self.handle(transfer.fd)?;
        let room =
            usize::try_from(self.connection(transfer.fd)?.room_on_syn()).unwrap_or(usize::MAX);
        let mut bytes = transfer.data.clone().unwrap_or_default();
        bytes.resize(transfer.count, 0);
        bytes.truncate(room);
        if !bytes.is_empty() {
            self.written =
                self.host.stack_mut().tcp_write(self.now, handle, &bytes).map_err(errno)?;
            let waits =
                !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0;
            let is_last = self.written == transfer.count || !waits;
            let control = transfer.control.as_deref();
            self.note_write(transfer.fd, self.written, is_last, None, control);
        }
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Script, Verdict, run_on_stack};

    #[test]
    fn supported_bits_are_parsed_and_fast_open_without_a_cookie_is_refused() {
        let enabled =
            |value, wanted| rules(value).map(|rules| (rules.client, rules.of_listener(wanted, 9)));
        assert_eq!(enabled("0", 4), Ok((false, None)));
        assert_eq!(enabled("1", 4), Ok((true, None)));
        assert_eq!(enabled("2", 4), Ok((false, Some(4))));
        assert_eq!(enabled("3", 0), Ok((true, None)));
        assert_eq!(enabled("0x70403", 0), Ok((true, Some(9))));
        for value in ["4", "0x203", "yes", "-1"] {
            assert!(rules(value).is_err(), "{value}");
        }
    }

    #[test]
    fn a_key_consists_of_four_little_endian_words() {
        let read = keys("00112233-4-5-ff000000,0-0-0-1").unwrap();
        assert_eq!(read.current, [0x33, 0x22, 0x11, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0xff]);
        assert_eq!(read.previous, Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]));
        for text in ["", "1-2-3", "1-2-3-4-5", "1-2-3-g", "1-2-3-4,", "1-2-3-4,1-2"] {
            assert_eq!(keys(text), None, "{text}");
        }
    }

    #[test]
    fn the_limit_of_a_listener_can_be_set_only_before_the_first_syn() {
        const LISTENER: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                                +0 bind(3, ..., ...) = 0\n\
                                +0 listen(3, 1) = 0\n";
        const LIMIT: &str = "+0 setsockopt(3, SOL_TCP, TCP_FASTOPEN, [5], 4) = 0\n";
        const SYN: &str = "+0 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n";
        let run = |text: String| {
            let script = Script::parse(&text, None).unwrap();
            run_on_stack(&script, &Options::default()).verdict
        };
        assert_eq!(run([LISTENER, LIMIT, LIMIT, SYN].concat()), Verdict::Passed);
        let late = run([LISTENER, SYN, LIMIT].concat());
        let Verdict::Refused { line: 6, what } = &late else { panic!("{late:?}") };
        assert!(what.contains("before the first one"), "{what}");
    }
}
