//! TCP Fast Open for clients: the cookie in a SYN, and the cache of servers and their cookies (RFC
//! 7413 §4.1.3). The server side is elsewhere: `tcp/fast_open/cookie.rs` makes cookies, and
//! `listen/fast_open.rs` accepts them.

use crate::demux::Flow;
use crate::stack::Stack;
use crate::tcp::fast_open::cookie::FastOpenKeys;
use linerate_tcp::{FastOpenLesson, FastOpenOffer};
use linerate_units::Instant;

impl Stack {
    /// Returns the Fast Open option for the SYN of a new connection: the cached cookie of the
    /// server, or a request for a cookie. Returns `None` if Fast Open to the server has failed
    /// recently.
    #[cold]
    pub(crate) fn offer_fast_open(&mut self, now: Instant, flow: Flow) -> Option<FastOpenOffer> {
        let offer = self.fast_opens.offer(now, &flow);
        self.counted.tcp_extra.fast_opens_withheld += u64::from(offer.is_none());
        offer
    }

    /// Sets the keys by which listeners make and check Fast Open cookies. Several hosts behind one
    /// address must have equal keys, so that each accepts the cookies of the others. `None`, the
    /// default, selects generated keys, which are replaced every hour.
    pub const fn set_fast_open_keys(&mut self, keys: Option<FastOpenKeys>) {
        self.fast_open_cookies.set_keys(keys);
    }

    /// Stores in the cache of servers the result of a connection's SYN exchange: the cookie and MSS
    /// that the server has sent, or the failure of Fast Open.
    #[inline]
    pub(crate) fn learn_fast_open(&mut self, index: u32) {
        if let Some(socket) = self.sockets.full_at(index)
            && let Some(lesson) = socket.connection.fast_open_lesson()
        {
            let flow = socket.flow();
            self.learn(&flow, &lesson);
        }
    }

    #[cold]
    fn learn(&mut self, flow: &Flow, lesson: &FastOpenLesson) {
        let counted = &mut self.counted.tcp_extra;
        counted.fast_opens_active += u64::from(lesson.accepted);
        counted.fast_opens_refused += u64::from(lesson.refused);
        counted.fast_opens_forgotten += self.fast_opens.learn(self.now, flow, lesson);
    }
}
