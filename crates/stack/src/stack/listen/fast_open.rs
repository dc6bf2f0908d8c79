//! Whom a listener lets in by TCP Fast Open (RFC 7413 §4.2.2): who brings a cookie that is good, as long as
//! not too many wait for the end of their handshake.
//!
//! A stolen cookie opens connections from an address that is not the thief's. So those that wait are
//! limited, and those that are reset while they wait count on for a while: it is their owner's host that
//! resets them, and without that a flood would be let in as fast as resets come back (§5.1). While a
//! listener gives SYN cookies it lets in nobody: it is being flooded, and keeps nothing of a SYN.

use crate::handle::ListenHandle;
use crate::ip::Arrived;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::fast_open::cookie::CookieValidity;
use crate::tcp::listen::fast_open::Admission;
use linerate_tcp::Error;
use linerate_wire::Segment;

impl Stack {
    /// Steps 1 to 3 of RFC 7413 §4.2.2, for the listener `index`, which lets in at most `limit` so.
    #[cold]
    pub(super) fn judge_fast_open(
        &mut self,
        arrived: &Arrived<'_>,
        (index, limit): (u32, usize),
        syn: &Segment<'_>,
    ) -> Admission {
        const ORDINARY: Admission = Admission::Ordinary(None);
        let now = arrived.arrival.at;
        let Some(listener) = self.sockets.listener_at(index) else { return ORDINARY };
        let Some(brought) = syn.options().fast_open else { return ORDINARY };
        let counted = &mut self.counted.tcp_extra;
        if !listener.pending.has_room(now, limit) {
            counted.fast_open_overflows += 1;
            return ORDINARY;
        }
        let (server, client) = (arrived.header.destination, arrived.header.source);
        // The answer bears the option that the client knows.
        let cookie = Some(
            self.fast_open_cookies.make(now, server, client).carried(brought.is_experimental()),
        );
        if brought.is_request() {
            counted.fast_open_cookies_asked += 1;
            return Admission::Ordinary(cookie);
        }
        match self.fast_open_cookies.validate(now, server, client, &brought) {
            CookieValidity::Current => Admission::Fast(None),
            CookieValidity::Previous => {
                counted.fast_opens_by_previous_key += 1;
                Admission::Fast(cookie)
            }
            CookieValidity::Invalid => {
                counted.fast_opens_with_wrong_cookie += 1;
                Admission::Ordinary(cookie)
            }
        }
    }

    /// A connection of the listener `index` was opened fast: it waits to be accepted from now on, and for
    /// the end of its handshake.
    #[cold]
    pub(super) fn enter_pending(&mut self, index: u32, connection: u32) {
        if let Some(handle) = self.sockets.listen_handle(index) {
            self.pending_fast.insert(connection, handle);
        }
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.pending.waiting += 1;
            listener.counted.opened_fast += 1;
        }
        self.counted.tcp_extra.fast_opens_passive += 1;
        self.make_acceptable(index, connection);
    }

    /// The handshake of a connection is over, one way or the other: if it was opened fast, it waits no
    /// longer.
    #[cold]
    pub(crate) fn leave_pending(&mut self, index: u32) {
        let Some(handle) = self.pending_fast.remove(&index) else { return };
        let was_reset = self
            .sockets
            .tcp_at(index)
            .is_some_and(|socket| socket.connection.error() == Some(Error::Reset));
        // The listener may have ended before its connection.
        if let Ok((_, listener)) = self.sockets.listener_mut(handle) {
            listener.pending.leave(self.now, was_reset);
        }
    }

    /// How many connections wait that count at the listener.
    pub(super) fn count_pending(&self, handle: ListenHandle) -> usize {
        let is_open = |index| self.sockets.get(index).and_then(Socket::as_tcp).is_some();
        self.pending_fast.iter().filter(|&(&index, &at)| at == handle && is_open(index)).count()
    }
}
