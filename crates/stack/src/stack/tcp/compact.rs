//! The transitions of sockets to and from their compact forms: idle connections and TIME-WAIT
//! records.

use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::compact::CompactSocket;
use crate::tcp::{Owner, TcpSocket, TcpTimer};
use alloc::boxed::Box;
use linerate_tcp::{CompactConnection, State};

impl Stack {
    /// Unpacks a connection for an access that need not be dispatched.
    pub(crate) fn unpack(&mut self, index: u32) {
        if matches!(self.sockets.get(index), Some(Socket::Compact(_) | Socket::TimeWait(_))) {
            self.dispatch_step(index);
        }
    }

    /// Handles a connection that was opened or accepted. If there are now too many new connections,
    /// the oldest of them is packed if it is idle.
    pub(crate) fn handle_newcomer(&mut self, index: u32) {
        let Some(oldest) = self.memory.handle_newcomer(index) else { return };
        if let Some(socket) = self.sockets.full_at(oldest) {
            socket.connection.driver().end_idle_period();
            self.pack_if_idle(oldest);
        }
    }

    /// Packs a connection, after a timer found no activity. The timer is armed anew for the exact
    /// deadline of the compact form, since an earlier expiry would unpack the connection again.
    pub(super) fn pack_if_idle(&mut self, index: u32) {
        let may = |socket: &&mut TcpSocket| !socket.is_retired && socket.connection.can_compact();
        let Some(socket) = self.sockets.tcp_at(index).filter(may) else { return };
        if socket.state == State::TimeWait && socket.owner == Owner::Orphan {
            self.reduce_to_record(index);
            return;
        }
        let deadline = socket.connection.poll_timeout();
        let Some(compact) = CompactSocket::<CompactConnection>::of(socket) else { return };
        self.sockets.replace_by_compact(index, Socket::Compact(Box::new(compact)));
        self.batch.forget();
        self.timers.set(TcpTimer::Connection(index), deadline);
    }

    /// Reduces a connection in TIME-WAIT to a record, if it is an orphan with nothing left to send.
    /// Returns whether it did.
    pub(crate) fn reduce_to_record(&mut self, index: u32) -> bool {
        let Some(end) = self.sockets.replace_by_record(index) else { return false };
        self.batch.forget();
        self.queue_for_end(index, end);
        true
    }

    /// Dispatches a step in TIME-WAIT, or reduces the connection to a record.
    #[cold]
    pub(super) fn dispatch_in_time_wait(&mut self, index: u32) {
        if !self.reduce_to_record(index) {
            self.dispatch_step(index);
        }
    }

    /// Ends a TIME-WAIT record, because its time has passed or its place is needed. Returns false
    /// for any other socket.
    pub(crate) fn end_record(&mut self, index: u32) -> bool {
        let Some(Socket::TimeWait(socket)) = self.sockets.get(index) else { return false };
        self.flows.remove_hashed(socket.fields.flow_hash, &socket.flow(), index);
        self.leave_time_wait(index);
        self.memory.forget(index, 0);
        self.remove_socket(index);
        true
    }
}
