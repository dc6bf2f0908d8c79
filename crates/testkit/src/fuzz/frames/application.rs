//! The host's application in the fuzz target `frames_into_a_host`, which makes random calls.

use super::{MOST_SOCKETS, TestCase};
use linerate_stack::{ConnectOptions, UdpOptions};
use std::net::{Ipv4Addr, SocketAddrV4};

impl TestCase<'_> {
    pub(super) fn connect(&mut self) {
        let remote = SocketAddrV4::new(self.neighbor(), 7);
        if self.connections.len() >= MOST_SOCKETS {
            return;
        }
        let local = self.choices.of(&[0, 0, 3_000]);
        let local = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, local);
        let options = ConnectOptions { local: Some(local.into()), ..ConnectOptions::default() };
        self.connections.extend(self.host.stack_mut().tcp_connect(self.now, remote, &options));
    }

    pub(super) fn bind(&mut self) {
        if self.datagrams.len() < MOST_SOCKETS {
            let local = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, self.choices.of(&[5, 0]));
            self.datagrams.extend(self.host.stack_mut().udp_bind(local, &UdpOptions::default()));
        }
    }

    pub(super) fn use_connection(&mut self) {
        let (kind, index, count) =
            (self.choices.byte(), self.choices.byte(), self.choices.half() >> 2);
        let (now, stack) = (self.now, self.host.stack_mut());
        if kind.is_multiple_of(8) {
            let Some(&listener) = self.listeners.first() else { return };
            let Some((handle, _)) = stack.tcp_accept(listener) else { return };
            if self.connections.len() < MOST_SOCKETS {
                self.connections.push(handle);
            } else {
                stack.tcp_close(now, handle).expect("it was just accepted");
            }
            return;
        }
        if self.connections.is_empty() {
            return;
        }
        let index = usize::from(index) % self.connections.len();
        let handle = self.connections[index];
        match kind % 8 {
            1 | 2 => drop(stack.tcp_write(now, handle, &vec![1; usize::from(count)])),
            3 | 4 => drop(stack.tcp_read(now, handle, &mut vec![0; usize::from(count)])),
            5 => drop(stack.tcp_shutdown_write(now, handle)),
            6 => {
                let _ = stack.tcp_close(now, handle);
                self.connections.swap_remove(index);
            }
            _ if count > 1_000 => {
                let _ = stack.tcp_abort(now, handle);
                self.connections.swap_remove(index);
            }
            _ => drop(stack.tcp_write_urgent(now, handle, &[1])),
        }
    }

    pub(super) fn use_others(&mut self) {
        let (kind, count) = (self.choices.byte(), usize::from(self.choices.half() >> 4));
        let remote = SocketAddrV4::new(self.neighbor(), 7);
        let (now, stack) = (self.now, self.host.stack_mut());
        match (kind % 8, self.datagrams.last().copied()) {
            (0, _) => self.bind(),
            (1, Some(handle)) => drop(stack.udp_send_to(now, handle, remote, &vec![2; count])),
            (2, Some(handle)) => drop(stack.udp_receive_from(handle, &mut vec![0; count])),
            (3, Some(handle)) => drop(stack.udp_connect(now, handle, remote)),
            (4, Some(handle)) => drop(stack.udp_send(now, handle, &vec![2; count])),
            (5, Some(handle)) => {
                let _ = stack.udp_close(handle);
                self.datagrams.pop();
            }
            (6, _) => drop(stack.echo_send(now, *remote.ip(), 1, 1, &vec![3; count])),
            (7, _) if count > 4_000 => {
                for listener in self.listeners.drain(..) {
                    let _ = stack.tcp_listen_close(now, listener);
                }
            }
            _ => {}
        }
    }
}
