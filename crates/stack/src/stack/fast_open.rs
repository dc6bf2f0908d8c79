//! What a client of TCP Fast Open brings, and what it remembers of servers (RFC 7413 §4.1.3). What a server
//! gives is made in `cookie`; whom it lets in stands in `listen/fast_open`.

use crate::stack::Stack;
use crate::tcp::fast_open::cookie::FastOpenKeys;
use core::net::SocketAddrV4;
use linerate_tcp::{FastOpenLesson, FastOpenOffer};
use linerate_units::Instant;

impl Stack {
    /// What a connection that is about to open tries: to bring the cookie that is remembered, or to get one,
    /// or neither where that has failed of late.
    #[cold]
    pub(crate) fn offer_fast_open(
        &mut self,
        now: Instant,
        local: SocketAddrV4,
        peer: SocketAddrV4,
    ) -> Option<FastOpenOffer> {
        let offer = self.fast_opens.offer(now, local, peer);
        self.counted.tcp_extra.fast_opens_withheld += u64::from(offer.is_none());
        offer
    }

    /// The keys with which this host makes Fast Open cookies, where several hosts share them behind one
    /// address; `None`, the rule, for keys of its own, a new one every hour.
    pub const fn set_fast_open_keys(&mut self, keys: Option<FastOpenKeys>) {
        self.mint.choose(keys);
    }

    /// The SYN of a connection has been answered, or given up: what that shows is remembered.
    #[inline]
    pub(crate) fn learn_fast_open(&mut self, index: u32) {
        if let Some(socket) = self.sockets.awake_at(index)
            && let Some(lesson) = socket.connection.fast_open_lesson()
        {
            let ends = (socket.local, socket.peer);
            self.learn(ends, &lesson);
        }
    }

    #[cold]
    fn learn(&mut self, (local, peer): (SocketAddrV4, SocketAddrV4), lesson: &FastOpenLesson) {
        let counted = &mut self.counted.tcp_extra;
        counted.fast_opens_active += u64::from(lesson.accepted);
        counted.fast_opens_refused += u64::from(lesson.refused);
        counted.fast_opens_forgotten += self.fast_opens.learn(self.now, local, peer, lesson);
    }
}
