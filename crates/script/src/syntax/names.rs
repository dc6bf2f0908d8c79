//! The constants that system calls in scripts may use. Values are those of Linux on most processors
//! (<asm-generic/socket.h>, <linux/tcp.h>, <asm-generic/errno.h>), because they are passed to the
//! kernel.

use core::fmt;

/// An error number of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    pub(crate) const AGAIN: Self = Self(11);
    pub(crate) const NOENT: Self = Self(2);
    pub(crate) const BADF: Self = Self(9);
    pub(crate) const EXIST: Self = Self(17);
    pub(crate) const INVAL: Self = Self(22);
    pub(crate) const PIPE: Self = Self(32);
    pub(crate) const MSGSIZE: Self = Self(90);
    pub(crate) const NOMSG: Self = Self(42);
    pub(crate) const NOTSOCK: Self = Self(88);
    pub(crate) const NOPROTOOPT: Self = Self(92);
    pub(crate) const OPNOTSUPP: Self = Self(95);
    pub(crate) const ADDRINUSE: Self = Self(98);
    pub(crate) const ADDRNOTAVAIL: Self = Self(99);
    pub(crate) const NETUNREACH: Self = Self(101);
    pub(crate) const CONNABORTED: Self = Self(103);
    pub(crate) const CONNRESET: Self = Self(104);
    pub(crate) const NOBUFS: Self = Self(105);
    pub(crate) const ISCONN: Self = Self(106);
    pub(crate) const NOTCONN: Self = Self(107);
    pub(crate) const TIMEDOUT: Self = Self(110);
    pub(crate) const CONNREFUSED: Self = Self(111);
    pub(crate) const HOSTUNREACH: Self = Self(113);
    pub(crate) const ALREADY: Self = Self(114);
    pub(crate) const INPROGRESS: Self = Self(115);
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name_of_errno(*self) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

const ERRNOS: [(&str, i32); 45] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("EWOULDBLOCK", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("EPIPE", 32),
    ("ENOMSG", 42),
    ("EPROTO", 71),
    ("ENOTSOCK", 88),
    ("EDESTADDRREQ", 89),
    ("EMSGSIZE", 90),
    ("EPROTOTYPE", 91),
    ("ENOPROTOOPT", 92),
    ("EPROTONOSUPPORT", 93),
    ("EOPNOTSUPP", 95),
    ("ENOTSUP", 95),
    ("EAFNOSUPPORT", 97),
    ("EADDRINUSE", 98),
    ("EADDRNOTAVAIL", 99),
    ("ENETDOWN", 100),
    ("ENETUNREACH", 101),
    ("ENETRESET", 102),
    ("ECONNABORTED", 103),
    ("ECONNRESET", 104),
    ("ENOBUFS", 105),
    ("EISCONN", 106),
    ("ENOTCONN", 107),
    ("ESHUTDOWN", 108),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTDOWN", 112),
    ("EHOSTUNREACH", 113),
    ("EALREADY", 114),
    ("EINPROGRESS", 115),
    ("ESTALE", 116),
    ("ECANCELED", 125),
];

const NUMBERS: [(&str, i64); 143] = [
    ("NULL", 0),
    ("AF_INET", 2),
    ("PF_INET", 2),
    ("AF_INET6", 10),
    ("PF_INET6", 10),
    ("SOCK_STREAM", 1),
    ("SOCK_DGRAM", 2),
    ("SOCK_NONBLOCK", 0o4000),
    ("SOCK_CLOEXEC", 0o2_000_000),
    ("IPPROTO_IP", 0),
    ("IPPROTO_TCP", 6),
    ("IPPROTO_UDP", 17),
    ("IPPROTO_IPV6", 41),
    ("SOL_IPV6", 41),
    ("SOL_IP", 0),
    ("SOL_SOCKET", 1),
    ("SOL_TCP", 6),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_NONBLOCK", 0o4000),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("SOMAXCONN", 4_096),
    ("MSG_OOB", 1),
    ("MSG_PEEK", 2),
    ("MSG_TRUNC", 0x20),
    ("MSG_DONTWAIT", 0x40),
    ("MSG_EOR", 0x80),
    ("MSG_WAITALL", 0x100),
    ("MSG_NOSIGNAL", 0x4000),
    ("MSG_MORE", 0x8000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("POLLIN", 1),
    ("POLLPRI", 2),
    ("POLLOUT", 4),
    ("POLLERR", 8),
    ("POLLHUP", 0x10),
    ("POLLNVAL", 0x20),
    ("POLLRDNORM", 0x40),
    ("POLLWRNORM", 0x100),
    ("POLLRDHUP", 0x2000),
    ("EPOLLIN", 1),
    ("EPOLLPRI", 2),
    ("EPOLLOUT", 4),
    ("EPOLLERR", 8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDNORM", 0x40),
    ("EPOLLWRNORM", 0x100),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLONESHOT", 0x4000_0000),
    ("EPOLLET", 0x8000_0000),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("EPOLL_CLOEXEC", 0x8_0000),
    ("MSG_CTRUNC", 8),
    ("MSG_ERRQUEUE", 0x2000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("SO_TIMESTAMPING", 37),
    ("SCM_TIMESTAMPING", 37),
    ("SO_EE_ORIGIN_NONE", 0),
    ("SO_EE_ORIGIN_LOCAL", 1),
    ("SO_EE_ORIGIN_ICMP", 2),
    ("SO_EE_ORIGIN_TIMESTAMPING", 4),
    ("SO_EE_ORIGIN_ZEROCOPY", 5),
    ("SO_EE_CODE_ZEROCOPY_COPIED", 1),
    ("SCM_TSTAMP_SND", 0),
    ("SCM_TSTAMP_SCHED", 1),
    ("SCM_TSTAMP_ACK", 2),
    ("SOF_TIMESTAMPING_TX_HARDWARE", 1),
    ("SOF_TIMESTAMPING_TX_SOFTWARE", 2),
    ("SOF_TIMESTAMPING_RX_HARDWARE", 4),
    ("SOF_TIMESTAMPING_RX_SOFTWARE", 8),
    ("SOF_TIMESTAMPING_SOFTWARE", 16),
    ("SOF_TIMESTAMPING_SYS_HARDWARE", 32),
    ("SOF_TIMESTAMPING_RAW_HARDWARE", 64),
    ("SOF_TIMESTAMPING_OPT_ID", 128),
    ("SOF_TIMESTAMPING_TX_SCHED", 256),
    ("SOF_TIMESTAMPING_TX_ACK", 512),
    ("SOF_TIMESTAMPING_OPT_CMSG", 0x400),
    ("SOF_TIMESTAMPING_OPT_TSONLY", 0x800),
    ("TCP_CM_INQ", 36),
    ("SIOCINQ", 0x541b),
    ("FIONREAD", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("TIOCOUTQ", 0x5411),
    ("SIOCOUTQNSD", 0x894b),
    ("SO_REUSEADDR", 2),
    ("SO_ERROR", 4),
    ("SO_SNDBUF", 7),
    ("SO_RCVBUF", 8),
    ("SO_KEEPALIVE", 9),
    ("SO_OOBINLINE", 10),
    ("SO_LINGER", 13),
    ("SO_REUSEPORT", 15),
    ("SO_RCVLOWAT", 18),
    ("SO_ACCEPTCONN", 30),
    ("SO_SNDBUFFORCE", 32),
    ("SO_RCVBUFFORCE", 33),
    ("SO_MARK", 36),
    ("SO_MAX_PACING_RATE", 47),
    ("SO_ZEROCOPY", 60),
    ("IP_TOS", 1),
    ("IP_TTL", 2),
    ("IP_MTU_DISCOVER", 10),
    ("IP_RECVERR", 11),
    ("IP_MTU", 14),
    ("IPV6_UNICAST_HOPS", 16),
    ("IPV6_MTU_DISCOVER", 23),
    ("IPV6_MTU", 24),
    ("IPV6_PMTUDISC_WANT", 1),
    ("IPV6_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_DONT", 0),
    ("IP_PMTUDISC_WANT", 1),
    ("IP_PMTUDISC_DO", 2),
    ("IP_PMTUDISC_PROBE", 3),
    ("TCP_NODELAY", 1),
    ("TCP_MAXSEG", 2),
    ("TCP_CORK", 3),
    ("TCP_KEEPIDLE", 4),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 6),
    ("TCP_SYNCNT", 7),
    ("TCP_LINGER2", 8),
    ("TCP_DEFER_ACCEPT", 9),
    ("TCP_WINDOW_CLAMP", 10),
    ("TCP_INFO", 11),
    ("TCP_QUICKACK", 12),
    ("TCP_CONGESTION", 13),
    ("TCP_THIN_LINEAR_TIMEOUTS", 16),
    ("TCP_USER_TIMEOUT", 18),
    ("TCP_FASTOPEN", 23),
    ("TCP_TIMESTAMP", 24),
    ("TCP_NOTSENT_LOWAT", 25),
    ("TCP_CC_INFO", 26),
    ("TCP_FASTOPEN_CONNECT", 30),
    ("TCP_FASTOPEN_NO_COOKIE", 34),
    ("TCP_INQ", 36),
    ("TCP_TX_DELAY", 37),
];

/// Returns the value of the constant `name`; `None` if there is no such constant.
pub(crate) fn constant(name: &str) -> Option<i64> {
    NUMBERS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// Returns the error number that has this name; `None` if there is none.
pub(super) fn errno(name: &str) -> Option<Errno> {
    ERRNOS.iter().find(|(known, _)| *known == name).map(|(_, number)| Errno(*number))
}

/// Returns the name of an error number; if it has several names, the first.
pub(crate) fn name_of_errno(errno: Errno) -> Option<&'static str> {
    ERRNOS.iter().find(|(_, number)| *number == errno.0).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_occurs_once() {
        let names: Vec<_> =
            ERRNOS.iter().map(|row| row.0).chain(NUMBERS.iter().map(|row| row.0)).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }

    #[test]
    fn an_error_has_a_name_or_a_number() {
        assert_eq!(
            (Errno(115).to_string(), Errno(9_999).to_string()),
            ("EINPROGRESS".into(), "error 9999".into())
        );
        assert_eq!(errno("ECONNRESET"), Some(Errno::CONNRESET));
    }
}
