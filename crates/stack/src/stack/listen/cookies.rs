//! SYN cookies: a listener answers a SYN without storing it, and creates the connection when the
//! peer's acknowledgement returns the cookie (RFC 4987 §3.6).

use crate::ip::Arrived;
use crate::stack::Stack;
use crate::tcp::Owner;
use crate::tcp::listen::SynCookies;
use crate::tcp::listen::syn_ack::Asked;
use crate::tcp::listen::syn_cookie::{PERIOD, StoredSyn};
use linerate_tcp::{EcnRule, Open};
use linerate_wire::{Segment, TcpFlags, TcpHeader, Timestamps};

impl Stack {
    /// Answers a SYN with a SYN-ACK whose sequence number is a SYN cookie.
    #[cold]
    pub(super) fn answer_with_cookie(
        &mut self,
        arrived: &Arrived<'_>,
        index: u32,
        syn: &Segment<'_>,
    ) {
        let now = arrived.arrival.at;
        let flow = arrived.flow(syn);
        let Ok(path_info) = self.path_to(now, arrived.source()) else {
            self.drop_syn(index);
            return;
        };
        let choice = self.config_of(index);
        let config = self.tcp_configs.shared(choice);
        let is_accurate =
            config.accurate_ecn != EcnRule::Off && syn.flags().asks_for_accurate_ecn();
        let kept = StoredSyn::of(syn, config.timestamps, is_accurate);
        let asked = Asked { kept: &kept, is_accurate, ecn: arrived.type_of_service.ecn() };
        let Some(form) = self.syn_acks.get(config, path_info.tcp_path(), &asked, syn) else {
            return;
        };
        let stamp = |timestamps: Timestamps| Timestamps {
            value: kept.timestamp(self.isn.timestamp_offset(&flow.hosts), now),
            echo: timestamps.value,
        };
        let timestamps = syn.timestamps().filter(|_| kept.has_timestamps()).map(stamp);
        let numbers = (self.cookies.make(now, &flow, &kept), syn.seq + 1);
        let mut bytes = [0; TcpHeader::MAX_LENGTH];
        let (length, sum) = form.write(numbers, timestamps, &mut bytes);
        self.answer_segment(arrived, syn, &bytes[..length], sum);
        self.counted.tcp_extra.syn_cookies_sent += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.cookie_sent = Some(now);
            listener.counted.cookies_sent += 1;
        }
    }

    /// Is `segment`, which belongs to no connection, an acknowledgement of a valid SYN cookie of
    /// this listener?
    pub(crate) fn brings_cookie(
        &mut self,
        arrived: &Arrived<'_>,
        index: u32,
        segment: &Segment<'_>,
    ) -> bool {
        let control = TcpFlags::SYN | TcpFlags::RST | TcpFlags::ACK;
        segment.flags() & control == TcpFlags::ACK
            && self.expects_cookies(arrived, index)
            && self.cookies.read(arrived.arrival.at, &arrived.flow(segment), segment).is_some()
    }

    /// Opens a connection if `ack`, which belongs to no connection, acknowledges a valid SYN cookie
    /// of this listener. Returns false if there is no valid cookie; the caller then answers with a
    /// reset. Returns true for a valid cookie, even if `ack` was dropped for lack of room.
    #[cold]
    pub(crate) fn take_cookie(
        &mut self,
        arrived: &Arrived<'_>,
        index: u32,
        ack: &Segment<'_>,
    ) -> bool {
        if !self.expects_cookies(arrived, index) || ack.flags().contains(TcpFlags::SYN) {
            return false;
        }
        let flow = arrived.flow(ack);
        let Some(kept) = self.cookies.read(arrived.arrival.at, &flow, ack) else {
            self.refuse_cookie(index, false);
            return false;
        };
        if !self.has_accept_room(index) {
            // The accept queue is full, so the acknowledgement is dropped. The cookie is not marked
            // as used, so the peer's retransmission with data can still open the connection.
            self.count_overflow(index);
            return true;
        }
        let path_info = self.path_to(arrived.arrival.at, arrived.source());
        let (Ok(path_info), Ok(())) = (path_info, self.sockets.has_room()) else {
            self.drop_syn(index);
            return true;
        };
        if !self.cookies.take(&flow, ack.ack - 1) {
            self.refuse_cookie(index, true);
            return false;
        }
        let choice = self.config_of(index);
        let mut field = [0; 40];
        // A SYN that was answered with a cookie is not stored. Therefore the acknowledgement must
        // show whether AccECN was negotiated: it was if the ACE field is at least 2 (RFC 9768
        // §5.1).
        let may_be =
            self.tcp_configs.shared(choice).accurate_ecn != EcnRule::Off && !kept.has_classic_ecn();
        let syn = kept.syn(ack, may_be && ack.flags().ace() >= 2, &mut field);
        let ecn = arrived.type_of_service.ecn();
        let (owner, iss) = (Owner::HalfOpen(index), Some(ack.ack - 1));
        let connection =
            self.insert_tcp(owner, flow, &path_info, choice, Open::Passive, iss).index();
        if let Some(socket) = self.sockets.tcp_at(connection) {
            socket.connection.driver().learn_from_cookie(&syn, ack, ecn, arrived.arrival.at);
        }
        self.counted.tcp.passive_opens += 1;
        self.counted.tcp_extra.syn_cookies_received += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            listener.counted.cookies_taken += 1;
        }
        self.dispatch_step(connection);
        true
    }

    /// Has this listener sent a cookie so recently that a cookie may still be valid?
    /// Acknowledgements are checked for cookies only in this time. At all other times, an attacker
    /// cannot guess a cookie.
    fn expects_cookies(&mut self, arrived: &Arrived<'_>, index: u32) -> bool {
        let Some(listener) = self.sockets.listener_at(index) else { return false };
        let is_recent =
            listener.cookie_sent.is_some_and(|sent| arrived.arrival.at.since(sent) < PERIOD * 2);
        listener.options.syn_cookies != SynCookies::Never && is_recent
    }

    fn refuse_cookie(&mut self, index: u32, is_replayed: bool) {
        self.counted.tcp_extra.syn_cookies_failed += 1;
        if let Some(listener) = self.sockets.listener_at(index) {
            let counted = &mut listener.counted;
            let which = if is_replayed {
                &mut counted.cookies_replayed
            } else {
                &mut counted.cookies_refused
            };
            *which += 1;
        }
    }
}
