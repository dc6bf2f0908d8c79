//! A connection to which nothing has happened for a while, in a fifth of the memory; and what must be kept of one
//! in TIME-WAIT, in a tenth. Whoever wants to change anything about it wakes it, and whoever looks at it is shown
//! what it would be awake.

use crate::sockets::Socket;
use crate::stack::Stack;
use crate::tcp::resting::RestingSocket;
use crate::tcp::{Owner, TcpSocket, TcpTimer};
use alloc::boxed::Box;
use linerate_tcp::{Resting, State};

impl Stack {
    /// Somebody wants the connection for something that is perhaps no step of it.
    pub(crate) fn wake(&mut self, index: u32) {
        if matches!(self.sockets.get(index), Some(Socket::Resting(_) | Socket::Waiting(_))) {
            self.settle(index);
        }
    }

    /// A connection was opened, or accepted. The newcomer that leaves its place for it rests, if it is quiet.
    pub(crate) fn welcome(&mut self, index: u32) {
        let Some(oldest) = self.memory.welcome(index) else { return };
        if let Some(socket) = self.sockets.awake_at(oldest) {
            socket.connection.hasten_rest();
            self.let_rest(oldest);
        }
    }

    /// Nothing was due of a connection but to look at it: if nothing has happened either, it rests. The
    /// timer that it rests with is armed anew, or the one of its busy life would wake it.
    pub(super) fn let_rest(&mut self, index: u32) {
        let may = |socket: &&mut TcpSocket| !socket.retired && socket.connection.is_quiet();
        let Some(socket) = self.sockets.tcp_at(index).filter(may) else { return };
        if socket.state == State::TimeWait && socket.owner == Owner::Nobody {
            self.wait_out(index);
            return;
        }
        let deadline = socket.connection.poll_timeout();
        let Some(resting) = RestingSocket::<Resting>::of(socket) else { return };
        self.sockets.put_to_rest(index, Socket::Resting(Box::new(resting)));
        self.burst.forget();
        self.timers.set(TcpTimer::Of(index), deadline);
    }

    /// A connection is in TIME-WAIT: if it has said all, and nobody holds it, only that is kept of it which
    /// TIME-WAIT needs.
    pub(crate) fn wait_out(&mut self, index: u32) -> bool {
        let Some(end) = self.sockets.put_to_wait(index) else { return false };
        self.burst.forget();
        self.queue_for_end(index, end);
        true
    }

    /// The same after a step, which is settled unless nothing but this is left to be done.
    #[cold]
    pub(super) fn settle_in_time_wait(&mut self, index: u32) {
        if !self.wait_out(index) {
            self.settle(index);
        }
    }

    /// TIME-WAIT of a connection of which nothing else is kept has come to its end, or its place is wanted.
    /// False if it is not such a one.
    pub(crate) fn end_waiting(&mut self, index: u32) -> bool {
        let Some(Socket::Waiting(socket)) = self.sockets.get(index) else { return false };
        self.flows.remove_hashed(socket.beside.flow_hash, socket.flow(), index);
        self.leave_time_wait(index);
        self.memory.forget(index, 0);
        self.sockets.remove(index);
        true
    }
}
