//! TCP Fast Open for listeners (RFC 7413 §4.2.2): accepts the data of a SYN with a valid cookie, up
//! to a limit of pending connections.
//!
//! The module `tcp::listen::fast_open` gives the reasons for the limit.

use crate::handle::ListenHandle;
use crate::ip::Arrived;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::fast_open::cookie::CookieValidity;
use crate::tcp::listen::fast_open::Admission;
use linerate_tcp::Error;
use linerate_wire::Segment;

impl Stack {
    /// Decides whether a SYN opens a connection by Fast Open, by steps 1 to 3 of RFC 7413 §4.2.2.
    /// `index` is the index of the listener. `limit` is the maximum number of connections of this
    /// listener whose Fast Open handshake is pending.
    #[cold]
    pub(super) fn check_fast_open(
        &mut self,
        arrived: &Arrived<'_>,
        (index, limit): (u32, usize),
        syn: &Segment<'_>,
    ) -> Admission {
        const ORDINARY: Admission = Admission::Ordinary(None);
        let now = arrived.arrival.at;
        let Some(listener) = self.sockets.listener_at(index) else { return ORDINARY };
        let Some(received) = syn.options().fast_open else { return ORDINARY };
        let counted = &mut self.counted.tcp_extra;
        if !listener.pending.has_room(now, limit) {
            counted.fast_open_overflows += 1;
            return ORDINARY;
        }
        let hosts = &arrived.hosts;
        // The Fast Open option exists with a standard and with an experimental option kind. The
        // SYN-ACK carries the cookie in an option of the kind that the client has used in its SYN.
        let cookie =
            Some(self.fast_open_cookies.make(now, hosts).carried(received.is_experimental()));
        if received.is_request() {
            counted.fast_open_cookies_asked += 1;
            return Admission::Ordinary(cookie);
        }
        match self.fast_open_cookies.validate(now, hosts, &received) {
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

    /// Adds a connection that was opened by Fast Open to the accept queue. Also records that its
    /// handshake is pending.
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

    /// Removes the record that the handshake of a connection is pending, because the handshake has
    /// ended.
    #[cold]
    pub(crate) fn leave_pending(&mut self, index: u32) {
        let Some(handle) = self.pending_fast.remove(&index) else { return };
        let was_reset = self
            .sockets
            .tcp_at(index)
            .is_some_and(|socket| socket.connection.error() == Some(Error::Reset));
        // If the listener was closed while the handshake was pending, there is no counter to
        // update.
        if let Ok((_, listener)) = self.sockets.listener_mut(handle) {
            listener.pending.leave(self.now, was_reset);
        }
    }

    /// Counts the Fast Open connections of a listener whose handshake is pending. A check compares
    /// the result with the counter of the listener.
    pub(super) fn count_pending(&self, handle: ListenHandle) -> usize {
        let is_open = |index| self.sockets.get(index).and_then(Socket::as_tcp).is_some();
        self.pending_fast.iter().filter(|&(&index, &at)| at == handle && is_open(index)).count()
    }
}
