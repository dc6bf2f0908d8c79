//! Passes file descriptors between processes, by inheritance and over Unix sockets.

use crate::sys::inherited::duplicate;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Returns the file descriptor with this number, which the parent process has left open for this
/// process. Programs that this process runs later do not inherit the descriptor.
///
/// # Errors
/// If no descriptor has this number.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    Ok(duplicate(number)?)
}

/// Sends a file descriptor to the peer process of `socket`.
///
/// # Errors
/// An error of the system.
pub fn send(socket: &UnixStream, fd: impl AsFd) -> io::Result<()> {
    let fds = [fd.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(&fds));
    // A message that carries a descriptor must contain at least one byte.
    sendmsg(socket, &[IoSlice::new(&[0])], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Receives a file descriptor from the peer process of `socket`.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the peer has sent no descriptor, or an error of the system.
pub fn receive(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    loop {
        let mut parts = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut parts, &mut message, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(_) => break,
        }
    }
    let mut fds = message.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    fds.next().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_descriptor_is_passed_over_a_socket() {
        let (left, right) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&left, &writer).unwrap();
        drop(writer);
        let mut received = io::PipeWriter::from(receive(&right).unwrap());
        received.write_all(b"through").unwrap();
        drop(received);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        drop(left);
        assert_eq!(receive(&right).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_number_without_a_descriptor_is_an_error() {
        assert!(inherited(-1).is_err());
        assert!(inherited(i32::MAX).is_err());
    }
}
