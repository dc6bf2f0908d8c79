//! The TUN device of a gateway program. Its descriptor is inherited, and tokio reads and writes it
//! as a stream of packets.

#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A TUN device without offloads. Each read returns one packet, and each write sends one packet.
#[derive(Debug)]
pub struct Tun(AsyncFd<File>);

impl Tun {
    /// Takes over the descriptor whose number is the first argument of the program. Returns the
    /// device, and its MTU in bytes, which is the second argument.
    ///
    /// # Errors
    /// An error of the system, or a message that an argument is not a number.
    pub fn of_arguments() -> io::Result<(Self, usize)> {
        let mut words = std::env::args().skip(1);
        let mut number = || {
            let word = words.next().unwrap_or_default();
            word.parse::<i32>().map_err(|error| io::Error::other(format!("`{word}`: {error}")))
        };
        let (fd, mtu) = (number()?, number()?);
        let file = File::from(linerate_link::passing::inherited(fd)?);
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok((Self(asynchronous(file)?), usize::try_from(mtu).unwrap_or(1_500)))
    }

    /// Receives one packet into `packet`, and returns its length in bytes.
    ///
    /// # Errors
    /// An error of the system.
    pub async fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.0.readable().await?;
            if let Ok(result) = guard.try_io(|fd| fd.get_ref().read(packet)) {
                return result;
            }
        }
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// An error of the system.
    pub async fn send(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            let mut guard = self.0.writable().await?;
            if let Ok(result) = guard.try_io(|fd| fd.get_ref().write(packet)) {
                return result.map(drop);
            }
        }
    }
}

/// Registers the device with tokio. `AsyncFd::new` is deprecated, but its replacement is unsafe and
/// has the same effect.
#[allow(deprecated, reason = "the file is owned, so its descriptor stays the same")]
fn asynchronous(file: File) -> io::Result<AsyncFd<File>> {
    AsyncFd::new(file)
}

impl AsyncRead for Tun {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            let room = into.initialize_unfilled();
            match guard.try_io(|fd| fd.get_ref().read(room)) {
                Ok(Ok(count)) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Tun {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        packet: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            if let Ok(result) = guard.try_io(|fd| fd.get_ref().write(packet)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
