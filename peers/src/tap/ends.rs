//! The two ends of a connection over a device: a contender's stack, and a socket of the kernel.

use super::{Device, Hands, OnTap};
use crate::work::BUFFER;
use linerate_link::kernel_socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};

// Values of `SOL_SOCKET`, `SO_SNDBUF` and `SO_RCVBUF` on Linux.
const SOCKET: i32 = 1;
const SEND_BUFFER: i32 = 7;
const RECEIVE_BUFFER: i32 = 8;
/// Maximum time to wait if no data moved in the previous turn. The wait must end even if no
/// descriptor becomes readable, because a delayed acknowledgement or a thread of the kernel may be
/// due.
const LONGEST_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Maximum number of turns of the stack in which a connection must open.
const ATTEMPTS: usize = 2_000;

/// A contender's stack on a device, and a listener of the kernel that the stack can reach.
pub struct Ends<S> {
    pub stack: S,
    listener: TcpListener,
}

impl<S: OnTap> Ends<S> {
    /// Creates the device, the stack and the listener.
    pub fn new(device: Device, hands: Hands) -> Result<Self, String> {
        let stack = S::new(device, hands)?;
        let [kernel, _] = device.addresses();
        let listener = stack.listen(SocketAddrV4::new(kernel, 0))?;
        set_buffers(&listener)?;
        listener.set_nonblocking(true).map_err(sentence)?;
        Ok(Self { stack, listener })
    }

    /// Opens a connection from the stack to the kernel. Returns the kernel's end of the connection.
    pub fn open(&mut self) -> Result<KernelEnd, String> {
        let port = self.listener.local_addr().map_err(sentence)?.port();
        self.stack.connect(port)?;
        for _ in 0..ATTEMPTS {
            self.stack.turn()?;
            if self.stack.is_open()
                && let Ok((stream, _)) = self.listener.accept()
            {
                stream.set_nonblocking(true).map_err(sentence)?;
                return Ok(KernelEnd(stream));
            }
            wait(&mut [PollFd::from_borrowed_fd(self.stack.link(), PollFlags::IN)])?;
        }
        Err("the connection does not open".to_owned())
    }

    /// Waits until a frame or data may have arrived. If `moved` is true, the previous turn moved
    /// data, so more may follow, and the function returns at once.
    pub fn wait_unless(&mut self, moved: bool, kernel: &KernelEnd) -> Result<(), String> {
        if moved {
            return Ok(());
        }
        let link = PollFd::from_borrowed_fd(self.stack.link(), PollFlags::IN);
        wait(&mut [link, PollFd::new(&kernel.0, PollFlags::IN)])
    }

    /// Runs a few turns of the stack, in which the final segments of an aborted connection are
    /// exchanged.
    pub fn exchange_last_segments(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            self.stack.turn()?;
        }
        Ok(())
    }
}

/// Sets the buffer sizes that all contenders share. The sockets that `listener` accepts inherit
/// these sizes.
pub fn set_buffers(listener: &TcpListener) -> Result<(), String> {
    for option in [SEND_BUFFER, RECEIVE_BUFFER] {
        let size = i32::try_from(BUFFER).map_err(sentence)?;
        kernel_socket::set_option(listener, SOCKET, option, &size.to_ne_bytes())
            .map_err(sentence)?;
    }
    Ok(())
}

fn wait(what: &mut [PollFd<'_>]) -> Result<(), String> {
    match poll(what, Some(&LONGEST_WAIT)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.to_string()),
    }
}

/// The kernel's end of a connection: a non-blocking socket.
pub struct KernelEnd(TcpStream);

impl KernelEnd {
    /// Reads received data. Returns the number of bytes; `None` if no data are available.
    pub fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, String> {
        unless_it_would_wait(self.0.read(into))
    }

    /// Writes data. Returns the number of bytes that the socket has taken; `None` if the send
    /// buffer is full.
    pub fn write(&mut self, piece: &[u8]) -> Result<Option<usize>, String> {
        unless_it_would_wait(self.0.write(piece))
    }

    /// Closes the sending direction of the connection.
    pub fn close(&self) -> Result<(), String> {
        self.0.shutdown(Shutdown::Write).map_err(sentence)
    }
}

fn unless_it_would_wait(outcome: std::io::Result<usize>) -> Result<Option<usize>, String> {
    match outcome {
        Ok(0) => Err("the connection has ended too early".to_owned()),
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(sentence(error)),
    }
}

pub fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}
