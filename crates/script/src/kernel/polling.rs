//! Executes `poll`, `epoll` and `ioctl` on the kernel of this machine.

use super::descriptors::Descriptors;
use crate::machine::{Answer, Output};
use crate::syntax::{EpollEvent, EpollOperation, Errno, PollEntry};
use linerate_link::{kernel_socket, kernel_tcp};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::io;
use std::os::fd::OwnedFd;

/// Timeout in milliseconds of an `epoll_wait` to which the script gives no timeout. The call must
/// return by itself, because nothing interrupts it when the script ends.
const LONGEST: i64 = 60_000;

/// Executes `poll` on descriptors of the kernel.
pub(super) fn poll_all(
    entries: &[PollEntry],
    timeout: i64,
    descriptors: &Descriptors,
) -> io::Result<Answer> {
    let sockets: Vec<_> = entries.iter().map(|entry| descriptors.get(entry.fd)).collect();
    let mut asked = Vec::new();
    for (entry, socket) in entries.iter().zip(&sockets) {
        let Some(socket) = socket else { return Err(io::Error::from_raw_os_error(Errno::BADF.0)) };
        let events = PollFlags::from_bits_retain(u16::try_from(entry.events).unwrap_or(0));
        asked.push(PollFd::new(&**socket, events));
    }
    let timeout = (timeout >= 0)
        .then(|| Timespec { tv_sec: timeout / 1_000, tv_nsec: timeout % 1_000 * 1_000_000 });
    let count = poll(&mut asked, timeout.as_ref())?;
    let found = asked.iter().map(|entry| entry.revents().bits().into()).collect();
    Ok(Answer::of_count(count, Output::Events(found)))
}

/// Executes `ioctl` on a socket of the kernel.
pub(super) fn ioctl(socket: &OwnedFd, request: i64) -> io::Result<Answer> {
    let number = match request {
        0x541b => kernel_socket::unread_bytes(socket),
        0x5411 => kernel_tcp::unacknowledged_bytes(socket),
        0x894b => kernel_socket::unsent_bytes(socket),
        _ => Err(io::Error::from_raw_os_error(Errno::INVAL.0)),
    }?;
    let output = Output::Number(i64::try_from(number).unwrap_or(i64::MAX));
    Ok(Answer { result: Ok(0), output })
}

/// Executes `epoll_ctl` on an epoll instance of the kernel.
pub(super) fn epoll_control(
    epoll: &OwnedFd,
    operation: EpollOperation,
    socket: &OwnedFd,
    event: EpollEvent,
) -> io::Result<Answer> {
    let data = epoll::EventData::new_u64(u64::from_ne_bytes(event.data.to_ne_bytes()));
    let flags = epoll::EventFlags::from_bits_retain(u32::try_from(event.events).unwrap_or(0));
    match operation {
        EpollOperation::Add => epoll::add(epoll, socket, data, flags),
        EpollOperation::Modify => epoll::modify(epoll, socket, data, flags),
        EpollOperation::Delete => epoll::delete(epoll, socket),
    }?;
    Ok(Answer::of(0))
}

/// Executes `epoll_wait` on an epoll instance of the kernel.
pub(super) fn epoll_wait(epoll: &OwnedFd, most: usize, timeout: i64) -> io::Result<Answer> {
    let millis = if timeout < 0 { LONGEST } else { timeout };
    let timeout = Timespec { tv_sec: millis / 1_000, tv_nsec: millis % 1_000 * 1_000_000 };
    let none =
        epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
    let mut events = vec![none; most];
    let count = epoll::wait(epoll, &mut events[..], Some(&timeout))?;
    events.truncate(count);
    let event = |event: &epoll::Event| EpollEvent {
        events: { event.flags }.bits().into(),
        data: i64::from_ne_bytes({ event.data }.u64().to_ne_bytes()),
    };
    let found = events.iter().map(event).collect();
    Ok(Answer::of_count(count, Output::Epoll(found)))
}
