//! Socket options that linerate's host supports.

mod connected;
mod datagrams;
mod unconnected;
mod values;

use super::StackMachine;
use super::error_queue::TIMESTAMPING;
use super::sockets::Socket;
use crate::machine::{Answer, Output};
use crate::syntax::{Errno, OptionValue, SocketOption, constant};
use values::{number, size};

pub(super) use values::{congestion, handshake_timeout};

/// A supported socket option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// `SO_REUSEADDR`. Without effect, because a closed listener never prevents a new one.
    ReuseAddress,
    Error,
    SendBuffer,
    ReceiveBuffer,
    KeepAlive,
    Linger,
    NoDelay,
    KeepIdle,
    KeepInterval,
    KeepCount,
    UserTimeout,
    Congestion,
    Information,
    TypeOfService,
    Ttl,
    /// `IP_MTU_DISCOVER`. It supports only `IP_PMTUDISC_DO` and `IP_PMTUDISC_WANT`, because
    /// segments are never fragmented.
    PathMtuDiscovery,
    PathMtu,
    /// `SO_OOBINLINE`. Urgent data are always read in line (RFC 6093 §6).
    UrgentInLine,
    LargestSegment,
    SynRetries,
    OrphanTimeout,
    Cork,
    UnsentLowWater,
    MaxPacingRate,
    DeferAccept,
    /// `TCP_FASTOPEN_CONNECT`: `connect` sends no SYN; the SYN carries the data of the first write.
    FastOpenConnect,
    ZeroCopy,
    Timestamping,
    /// `TCP_INQ`: each received message reports the number of unread bytes.
    Inquiry,
    /// `TCP_FASTOPEN`: limit of a listener's pending Fast Open connections.
    FastOpen,
}

const OPTIONS: [(&str, &str, Known); 33] = [
    ("SOL_SOCKET", "SO_REUSEADDR", Known::ReuseAddress),
    ("SOL_SOCKET", "SO_ERROR", Known::Error),
    ("SOL_SOCKET", "SO_SNDBUF", Known::SendBuffer),
    ("SOL_SOCKET", "SO_RCVBUF", Known::ReceiveBuffer),
    ("SOL_SOCKET", "SO_KEEPALIVE", Known::KeepAlive),
    ("SOL_SOCKET", "SO_LINGER", Known::Linger),
    ("SOL_TCP", "TCP_NODELAY", Known::NoDelay),
    ("SOL_TCP", "TCP_KEEPIDLE", Known::KeepIdle),
    ("SOL_TCP", "TCP_KEEPINTVL", Known::KeepInterval),
    ("SOL_TCP", "TCP_KEEPCNT", Known::KeepCount),
    ("SOL_TCP", "TCP_USER_TIMEOUT", Known::UserTimeout),
    ("SOL_TCP", "TCP_CONGESTION", Known::Congestion),
    ("SOL_TCP", "TCP_INFO", Known::Information),
    ("SOL_TCP", "TCP_FASTOPEN", Known::FastOpen),
    ("SOL_IP", "IP_TOS", Known::TypeOfService),
    ("SOL_IP", "IP_TTL", Known::Ttl),
    ("SOL_IP", "IP_MTU_DISCOVER", Known::PathMtuDiscovery),
    ("SOL_IP", "IP_MTU", Known::PathMtu),
    ("SOL_IPV6", "IPV6_UNICAST_HOPS", Known::Ttl),
    ("SOL_IPV6", "IPV6_MTU_DISCOVER", Known::PathMtuDiscovery),
    ("SOL_IPV6", "IPV6_MTU", Known::PathMtu),
    ("SOL_SOCKET", "SO_OOBINLINE", Known::UrgentInLine),
    ("SOL_TCP", "TCP_MAXSEG", Known::LargestSegment),
    ("SOL_TCP", "TCP_SYNCNT", Known::SynRetries),
    ("SOL_TCP", "TCP_LINGER2", Known::OrphanTimeout),
    ("SOL_TCP", "TCP_CORK", Known::Cork),
    ("SOL_TCP", "TCP_NOTSENT_LOWAT", Known::UnsentLowWater),
    ("SOL_TCP", "TCP_DEFER_ACCEPT", Known::DeferAccept),
    ("SOL_SOCKET", "SO_MAX_PACING_RATE", Known::MaxPacingRate),
    ("SOL_SOCKET", "SO_ZEROCOPY", Known::ZeroCopy),
    ("SOL_SOCKET", "SO_TIMESTAMPING", Known::Timestamping),
    ("SOL_TCP", "TCP_INQ", Known::Inquiry),
    ("SOL_TCP", "TCP_FASTOPEN_CONNECT", Known::FastOpenConnect),
];

impl Known {
    fn of(option: SocketOption) -> Option<Self> {
        let is = |row: &&(&str, &str, Self)| {
            constant(row.0) == Some(option.level) && constant(row.1) == Some(option.name)
        };
        OPTIONS.iter().find(is).map(|row| row.2)
    }

    const fn is_of_datagrams(self) -> bool {
        matches!(
            self,
            Self::Error | Self::TypeOfService | Self::Ttl | Self::PathMtu | Self::PathMtuDiscovery
        )
    }

    const fn can_be_read(self) -> bool {
        matches!(
            self,
            Self::Error
                | Self::Information
                | Self::NoDelay
                | Self::KeepAlive
                | Self::Cork
                | Self::LargestSegment
                | Self::UnsentLowWater
                | Self::OrphanTimeout
                | Self::PathMtu
        )
    }
}

impl StackMachine {
    /// Returns the reason why a socket option is not supported, if it is not.
    pub(super) fn unsupported_option(
        &self,
        fd: i32,
        option: SocketOption,
        value: Option<&OptionValue>,
    ) -> Option<String> {
        let Some(known) = Known::of(option) else {
            let names = OPTIONS.map(|row| row.1).join(", ");
            return Some(format!(
                "option {} of level {}: linerate's sockets have {names}",
                option.name, option.level
            ));
        };
        let is_listener = matches!(self.sockets.get(fd), Some(Socket::Listener { .. }));
        let is_connection = matches!(self.sockets.get(fd), Some(Socket::Connection { .. }));
        let unsupported = |what: &str| Some(what.to_owned());
        if self.has_datagrams(fd) && !known.is_of_datagrams() {
            return unsupported(
                "this option of a UDP socket: SO_ERROR, IP_TOS, IP_TTL, IP_MTU and \
                 IP_MTU_DISCOVER are supported",
            );
        }
        match (known, value) {
            (Known::PathMtuDiscovery, Some(OptionValue::Number(1 | 2)))
            | (Known::UrgentInLine, Some(OptionValue::Number(1))) => None,
            (Known::PathMtuDiscovery, _) => unsupported(
                "fragmented segments, or segments that ignore the path MTU: both are impossible",
            ),
            (Known::UrgentInLine, _) => {
                unsupported("urgent data out of line: it is always read in line")
            }
            (Known::Information | Known::Error | Known::PathMtu, Some(_)) => {
                unsupported("this option can only be read")
            }
            (known, None) if !known.can_be_read() => unsupported("this option can only be set"),
            (Known::FastOpen, Some(_)) => self.fast_open_obstacle(fd),
            (Known::Timestamping, Some(OptionValue::Number(flags)))
                if flags & !TIMESTAMPING != 0 =>
            {
                Some(format!(
                    "SO_TIMESTAMPING with flags {flags:#x}: TX_SCHED, TX_SOFTWARE, TX_ACK, \
                     SOFTWARE, OPT_ID and OPT_TSONLY are supported"
                ))
            }
            (Known::ZeroCopy, Some(_)) => None,
            (_, Some(_)) if is_listener => unsupported(
                "options of a listening socket: set them before `listen`, they are inherited",
            ),
            (
                Known::LargestSegment
                | Known::DeferAccept
                | Known::FastOpenConnect
                | Known::Congestion,
                Some(_),
            ) if is_connection => {
                unsupported("this option of a connection: set it before `listen` or `connect`")
            }
            (Known::Congestion, Some(OptionValue::Text(name))) => {
                congestion(name).is_none().then(|| format!("congestion control `{name}`"))
            }
            _ => None,
        }
    }

    pub(super) fn set_option(
        &mut self,
        fd: i32,
        option: SocketOption,
        value: &OptionValue,
    ) -> Result<Answer, Errno> {
        let known = Known::of(option).ok_or(Errno::NOPROTOOPT)?;
        match self.sockets.get(fd) {
            None => Err(Errno::BADF),
            Some(_) if known == Known::ZeroCopy => {
                self.error_queue(fd).zero_copy = number(value)? != 0;
                Ok(())
            }
            Some(_) if known == Known::Timestamping => self.set_timestamping(fd, number(value)?),
            Some(_) if known == Known::Inquiry => {
                self.inquiring.remove(&fd);
                self.inquiring.extend((number(value)? != 0).then_some(fd));
                Ok(())
            }
            Some(Socket::Connection { .. }) => self.set_on_connection(fd, known, value),
            Some(Socket::Datagrams { .. }) => self.set_on_datagrams(fd, known, value),
            Some(Socket::Listener { .. }) if known == Known::FastOpen => {
                self.set_fast_open(fd, size(value)?)
            }
            Some(_) => self.set_on_unconnected(fd, known, value),
        }?;
        Ok(Answer::of(0))
    }

    pub(super) fn get_option(&mut self, fd: i32, option: SocketOption) -> Result<Answer, Errno> {
        let known = Known::of(option).ok_or(Errno::NOPROTOOPT)?;
        let value = match known {
            Known::Error if self.has_datagrams(fd) => {
                let error = self.take_datagram_error(fd)?;
                OptionValue::Number(error.map_or(0, |errno| errno.0.into()))
            }
            Known::PathMtu if self.has_datagrams(fd) => wide(self.datagram_path_mtu(fd)?),
            Known::Error => {
                OptionValue::Number(self.take_error(fd).map_or(0, |errno| errno.0.into()))
            }
            Known::Information => return self.connection(fd).map(|_| Answer::of(0)),
            Known::NoDelay => OptionValue::Number(i64::from(self.connection(fd)?.no_delay())),
            Known::KeepAlive => {
                OptionValue::Number(i64::from(self.connection(fd)?.keep_alive().is_some()))
            }
            Known::Cork => OptionValue::Number(i64::from(self.connection(fd)?.cork())),
            Known::LargestSegment => match self.sockets.get(fd) {
                Some(Socket::Unconnected { config, .. }) => {
                    OptionValue::Number(config.largest_segment.unwrap_or(536).into())
                }
                _ => wide(self.connection(fd)?.effective_mss()),
            },
            Known::UnsentLowWater => {
                let low = self.connection(fd)?.unsent_low_water();
                OptionValue::Number(low.unwrap_or(0).into())
            }
            Known::OrphanTimeout => {
                let timeout = self.connection(fd)?.orphan_timeout();
                OptionValue::Number(i64::try_from(timeout.as_millis() / 1_000).unwrap_or(i64::MAX))
            }
            Known::PathMtu => {
                // A script that was written for IPv4 expects a path MTU with an IPv4 header. If it
                // runs over IPv6, the host's path MTU includes the longer IPv6 header.
                // `self.longer` is the difference of these lengths; it is zero over IPv4.
                wide(self.connection(fd)?.path_mtu().saturating_sub(self.longer.into()))
            }
            _ => return Err(Errno::NOPROTOOPT),
        };
        Ok(Answer { result: Ok(0), output: Output::Option(value) })
    }
}

fn wide(number: usize) -> OptionValue {
    OptionValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::{Options, Script, Verdict, run_on_stack};

    #[test]
    fn the_congestion_control_of_a_connection_is_refused_and_that_of_a_socket_is_set() {
        let script = |before: &str, after: &str| {
            let text = format!(
                "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                 {before}\
                 +0...0.01 connect(3, ..., ...) = 0\n\
                 +0 > S 0:0(0) <...>\n\
                 +.01 < S. 0:0(0) ack 1 win 100 <mss 1000>\n\
                 +0 > . 1:1(0) ack 1\n\
                 {after}"
            );
            run_on_stack(&Script::parse(&text, None).unwrap(), &Options::default()).verdict
        };
        let option = "+0 setsockopt(3, SOL_TCP, TCP_CONGESTION, \"reno\", 4) = 0\n";
        assert_eq!(script(option, ""), Verdict::Passed);
        let late = script("", option);
        let Verdict::Refused { what, .. } = &late else { panic!("{late:?}") };
        assert!(what.contains("set it before `listen` or `connect`"), "{what}");
    }
}
