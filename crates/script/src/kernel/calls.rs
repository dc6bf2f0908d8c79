//! Executes the system calls of a script on the kernel of this machine.

use super::descriptors::Descriptors;
use super::polling::{epoll_control, epoll_wait, ioctl, poll_all};
use crate::family::end_like;
use crate::machine::{Answer, Output};
use crate::syntax::{Call, Errno, OptionValue, Settings, SocketOption, Transfer};
use linerate_link::kernel_socket;
use rustix::event::epoll;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, send, sendto, shutdown, socket_with,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Size of the buffer for the value of a socket option, in bytes.
const OPTION_ROOM: usize = 512;

/// The addresses that a script's calls use by default, and the difference in header length between
/// the script's IP version and that of the packets.
#[derive(Debug)]
pub(super) struct Application {
    local: SocketAddr,
    remote: SocketAddr,
    /// Number of bytes by which IP headers on the wire are longer than those that the script
    /// assumes.
    longer: u16,
}

impl Application {
    pub(super) const fn new(settings: &Settings, longer: u16) -> Self {
        Self {
            local: SocketAddr::new(settings.local, settings.bind_port),
            remote: SocketAddr::new(settings.remote, settings.connect_port),
            longer,
        }
    }

    /// Executes a system call of the script on the kernel. The call may block. A socket that the
    /// call creates gets the number `name`.
    pub(super) fn perform(&self, call: &Call, name: i32, descriptors: &Descriptors) -> Answer {
        attempt(call, name, descriptors, self).unwrap_or_else(|error| Answer::error(errno(&error)))
    }

    /// Returns the address that a call gives, in the IP version of the host. If the call gives no
    /// address, returns `usual`, the default for this kind of call.
    fn address(&self, address: Option<SocketAddr>, usual: SocketAddr) -> SocketAddr {
        end_like(self.local.ip(), address.unwrap_or(usual))
    }

    /// Returns the socket option to set or read in the kernel for an option of the script. If the
    /// host uses IPv6, an option of the level `SOL_IP` is replaced by the IPv6 option with the same
    /// meaning.
    fn option(&self, option: SocketOption) -> SocketOption {
        /// Option numbers of IPv4, each with that of its IPv6 counterpart: `IP_TOS`, `IP_TTL`,
        /// `IP_MTU_DISCOVER` and `IP_MTU`.
        const COUNTERPARTS: [(i64, i64); 4] = [(1, 67), (2, 16), (10, 23), (14, 24)];
        const IPV6: i64 = 41;
        let counterpart = COUNTERPARTS.iter().find(|(name, _)| *name == option.name);
        match counterpart {
            Some(&(_, name)) if option.level == 0 && self.local.is_ipv6() => {
                SocketOption { level: IPV6, name }
            }
            _ => option,
        }
    }

    /// Converts the value of a socket option from the kernel to the value that a script for IPv4
    /// expects. The two differ only for an MTU when the script runs over IPv6, because the MTU
    /// includes the IP header.
    fn value(&self, option: SocketOption, number: i64) -> i64 {
        const IP_MTU: i64 = 14;
        let is_mtu = (option.level, option.name) == (0, IP_MTU);
        if is_mtu { number - i64::from(self.longer) } else { number }
    }
}

fn attempt(
    call: &Call,
    name: i32,
    descriptors: &Descriptors,
    application: &Application,
) -> io::Result<Answer> {
    let socket =
        |fd| descriptors.get(fd).ok_or_else(|| io::Error::from_raw_os_error(Errno::BADF.0));
    let zero = |()| Answer::of(0);
    Ok(match call {
        Call::Socket { nonblocking, datagrams } => {
            let family = match application.local.ip() {
                IpAddr::V4(_) => AddressFamily::INET,
                IpAddr::V6(_) => AddressFamily::INET6,
            };
            let kind = if *datagrams { SocketType::DGRAM } else { SocketType::STREAM };
            let made = socket_with(family, kind, flags(*nonblocking), None)?;
            descriptors.insert(name, made);
            Answer::of(name.into())
        }
        Call::Bind { fd, address } => {
            let local = application.address(*address, application.local);
            bind(&*socket(*fd)?, &local).map(zero)?
        }
        Call::Listen { fd, backlog } => listen(&*socket(*fd)?, *backlog).map(zero)?,
        Call::Accept { fd, nonblocking } => {
            let made = accept_with(&*socket(*fd)?, flags(*nonblocking))?;
            descriptors.insert(name, made);
            Answer::of(name.into())
        }
        Call::Connect { fd, address } => {
            let remote = application.address(*address, application.remote);
            connect(&*socket(*fd)?, &remote).map(zero)?
        }
        Call::Read(transfer) => {
            let mut bytes = vec![0; transfer.count];
            let flags = RecvFlags::from_bits_retain(bits(transfer.flags));
            let (count, _) = recv(&*socket(transfer.fd)?, &mut bytes[..], flags)?;
            bytes.truncate(count);
            Answer::of_count(count, Output::Bytes(bytes))
        }
        Call::Write(transfer) => {
            let written = write(&*socket(transfer.fd)?, transfer, application)?;
            Answer::of_count(written, Output::Nothing)
        }
        Call::Close { fd } => close(descriptors, *fd)?,
        Call::Shutdown { fd, how } => {
            let how = [Shutdown::Read, Shutdown::Write, Shutdown::Both]
                .get(usize::try_from(*how).unwrap_or(usize::MAX))
                .copied()
                .ok_or_else(|| io::Error::from_raw_os_error(Errno::INVAL.0))?;
            shutdown(&*socket(*fd)?, how).map(zero)?
        }
        Call::SetOption { fd, option, value } => {
            let SocketOption { level, name } = application.option(*option);
            kernel_socket::set_option(&*socket(*fd)?, narrow(level), narrow(name), &bytes_of(value))
                .map(zero)?
        }
        Call::GetOption { fd, option, value } => {
            get_option(&*socket(*fd)?, *option, value.as_ref(), application)?
        }
        Call::GetFlags { fd } => Answer::of(fcntl_getfl(&*socket(*fd)?)?.bits().into()),
        Call::SetFlags { fd, flags } => {
            fcntl_setfl(&*socket(*fd)?, OFlags::from_bits_retain(bits(*flags))).map(zero)?
        }
        Call::Poll { entries, timeout } => poll_all(entries, *timeout, descriptors)?,
        Call::EpollCreate => {
            descriptors.insert(name, epoll::create(epoll::CreateFlags::CLOEXEC)?);
            Answer::of(name.into())
        }
        Call::EpollControl { epoll, operation, fd, event } => {
            epoll_control(&*socket(*epoll)?, *operation, &*socket(*fd)?, *event)?
        }
        Call::EpollWait { epoll, most, timeout, .. } => {
            epoll_wait(&*socket(*epoll)?, *most, *timeout)?
        }
        Call::Ioctl { fd, request, .. } => ioctl(&*socket(*fd)?, *request)?,
    })
}

const fn flags(nonblocking: bool) -> SocketFlags {
    if nonblocking { SocketFlags::NONBLOCK } else { SocketFlags::empty() }
}

fn write(socket: &OwnedFd, transfer: &Transfer, application: &Application) -> io::Result<usize> {
    const FAST_OPEN: i64 = 0x2000_0000;
    let mut bytes = transfer.data.clone().unwrap_or_default();
    bytes.resize(transfer.count, 0);
    // MSG_NOSIGNAL: otherwise, a write to a closed connection would kill the process with SIGPIPE.
    let flags = SendFlags::from_bits_retain(bits(transfer.flags)) | SendFlags::NOSIGNAL;
    if transfer.address.is_some() || transfer.flags & FAST_OPEN != 0 {
        let remote = application.address(transfer.address, application.remote);
        return Ok(sendto(socket, &bytes, flags, &remote)?);
    }
    match send(socket, &bytes, flags) {
        // The script wrote a datagram without an address, on a socket without a peer. By default,
        // such a datagram goes to the script's peer.
        Err(rustix::io::Errno::DESTADDRREQ) => {
            Ok(sendto(socket, &bytes, flags, &application.remote)?)
        }
        sent => Ok(sent?),
    }
}

/// Closes a descriptor immediately. Fails if a call in progress still refers to it.
fn close(descriptors: &Descriptors, fd: i32) -> io::Result<Answer> {
    let socket =
        descriptors.remove(fd).ok_or_else(|| io::Error::from_raw_os_error(Errno::BADF.0))?;
    drop(Arc::try_unwrap(socket).map_err(|_| io::Error::other("the socket is in use"))?);
    Ok(Answer::of(0))
}

fn get_option(
    socket: &OwnedFd,
    option: SocketOption,
    wanted: Option<&OptionValue>,
    application: &Application,
) -> io::Result<Answer> {
    let SocketOption { level, name } = application.option(option);
    let bytes = kernel_socket::get_option(socket, narrow(level), narrow(name), OPTION_ROOM)?;
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        i64::from(word.map_or(0, i32::from_ne_bytes))
    };
    let value = match wanted {
        Some(OptionValue::Text(_)) => {
            let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            OptionValue::Text(String::from_utf8_lossy(text).into_owned())
        }
        Some(OptionValue::Linger { .. }) => {
            OptionValue::Linger { on: word(0) != 0, seconds: word(4) }
        }
        _ => OptionValue::Number(application.value(option, word(0))),
    };
    Ok(Answer { result: Ok(0), output: Output::Option(value) })
}

fn bytes_of(value: &OptionValue) -> Vec<u8> {
    match value {
        OptionValue::Number(number) => narrow(*number).to_ne_bytes().to_vec(),
        OptionValue::Linger { on, seconds } => {
            [i32::from(*on).to_ne_bytes(), narrow(*seconds).to_ne_bytes()].concat()
        }
        OptionValue::Text(text) => text.clone().into_bytes(),
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(0))
}

fn narrow(number: i64) -> i32 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "what C would make of it, for what was written as an int"
    )]
    {
        number as i32
    }
}

const fn bits(number: i64) -> u32 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "flags are bits")]
    {
        number as u32
    }
}
