//! Socket options of linerate's host.

use super::StackMachine;
use super::calls::errno;
use super::sockets::Socket;
use crate::machine::{Answer, Output};
use crate::syntax::{Errno, OptionValue, SocketOption, constant};
use linerate_tcp::{CongestionName, Connection, KeepAlive};
use linerate_units::Duration;
use linerate_wire::TypeOfService;

/// What an option is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Says nothing here: our listeners never stand in each other's way after a close.
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
    /// Only `IP_PMTUDISC_DO` and `…_WANT`: segments are never cut up.
    PathMtu,
    /// How many connections a listener may have opened fast at a time.
    FastOpen,
}

const OPTIONS: [(&str, &str, Known); 17] = [
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
    ("SOL_IP", "IP_MTU_DISCOVER", Known::PathMtu),
];

impl Known {
    fn of(option: SocketOption) -> Option<Self> {
        let is = |row: &&(&str, &str, Self)| {
            constant(row.0) == Some(option.level) && constant(row.1) == Some(option.name)
        };
        OPTIONS.iter().find(is).map(|row| row.2)
    }
}

impl StackMachine {
    /// What is missing for an option, if anything is.
    pub(super) fn lacks_option(
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
        match (known, value) {
            (Known::PathMtu, Some(OptionValue::Number(1 | 2))) | (Known::Information, None) => None,
            (Known::PathMtu, _) => Some("segments that may be cut up: they never are".to_owned()),
            (Known::Information | Known::Error, Some(_)) => {
                Some("this option can only be read".to_owned())
            }
            (Known::FastOpen, Some(_)) => self.lacks_fast_open(fd),
            (_, Some(_)) if matches!(self.sockets.get(fd), Some(Socket::Listener { .. })) => Some(
                "options of a socket that listens: set them before, they are inherited".to_owned(),
            ),
            (Known::SendBuffer | Known::ReceiveBuffer, Some(_))
                if matches!(self.sockets.get(fd), Some(Socket::Connection { .. })) =>
            {
                Some(
                    "a buffer is as large as it was made: set it before listen or connect"
                        .to_owned(),
                )
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
            Some(Socket::Connection { .. }) => self.set_on_connection(fd, known, value),
            Some(Socket::Listener { .. }) if known == Known::FastOpen => {
                self.set_fast_open(fd, size(value)?)
            }
            Some(_) => self.set_on_fresh(fd, known, value),
        }?;
        Ok(Answer::of(0))
    }

    fn set_on_fresh(&mut self, fd: i32, known: Known, value: &OptionValue) -> Result<(), Errno> {
        let default = self.keep_alive;
        let Some(Socket::Fresh { config, options, .. }) = self.sockets.get_mut(fd) else {
            return Err(Errno::INVAL);
        };
        match (known, value) {
            (Known::SendBuffer, value) => config.send_buffer = size(value)?.into(),
            (Known::ReceiveBuffer, value) => config.receive_buffer = size(value)?.into(),
            (Known::NoDelay, value) => config.no_delay = number(value)? != 0,
            (Known::Linger, value) => config.linger = linger(value)?,
            (Known::KeepAlive, value) => {
                let wanted = options.keep_alive.unwrap_or(default);
                config.keep_alive = (number(value)? != 0).then_some(wanted);
            }
            (Known::KeepIdle | Known::KeepInterval | Known::KeepCount, value) => {
                let changed = changed(options.keep_alive.unwrap_or(default), known, value)?;
                options.keep_alive = Some(changed);
                config.keep_alive = config.keep_alive.map(|_| changed);
            }
            (Known::UserTimeout, value) => config.user_timeout = user_timeout(value)?,
            (Known::Congestion, OptionValue::Text(name)) => {
                config.congestion = congestion(name).ok_or(Errno::INVAL)?;
            }
            (Known::TypeOfService, value) => options.type_of_service = byte(value)?,
            (Known::FastOpen, value) => options.fast_open = size(value)?,
            (Known::Ttl, value) => options.ttl = Some(byte(value)?),
            (Known::ReuseAddress | Known::PathMtu, _) => {}
            _ => return Err(Errno::INVAL),
        }
        Ok(())
    }

    fn set_on_connection(
        &mut self,
        fd: i32,
        known: Known,
        value: &OptionValue,
    ) -> Result<(), Errno> {
        let handle = self.handle(fd)?;
        let now = self.now;
        let Some(Socket::Connection { keep_alive, .. }) = self.sockets.get_mut(fd) else {
            return Err(Errno::BADF);
        };
        let stack = self.host.stack_mut();
        match known {
            Known::NoDelay => {
                let on = number(value)? != 0;
                stack
                    .tcp_configure(now, handle, |connection| connection.set_no_delay(on))
                    .map_err(errno)
            }
            Known::Linger => {
                let linger = linger(value)?;
                stack
                    .tcp_configure(now, handle, |connection| connection.set_linger(linger))
                    .map_err(errno)
            }
            Known::KeepAlive => {
                let wanted = (number(value)? != 0).then_some(*keep_alive);
                stack
                    .tcp_configure(now, handle, |connection| connection.set_keep_alive(now, wanted))
                    .map_err(errno)
            }
            Known::KeepIdle | Known::KeepInterval | Known::KeepCount => {
                *keep_alive = changed(*keep_alive, known, value)?;
                let wanted = *keep_alive;
                stack
                    .tcp_configure(now, handle, |connection| {
                        if connection.keep_alive().is_some() {
                            connection.set_keep_alive(now, Some(wanted));
                        }
                    })
                    .map_err(errno)
            }
            Known::UserTimeout => {
                let timeout = user_timeout(value)?;
                let change =
                    |connection: &mut Connection| connection.set_user_timeout(now, timeout);
                stack.tcp_configure(now, handle, change).map_err(errno)
            }
            Known::TypeOfService => stack
                .tcp_set_type_of_service(handle, TypeOfService::from_byte(byte(value)?))
                .map_err(errno),
            Known::Ttl => {
                let ttl = core::num::NonZeroU8::new(byte(value)?).ok_or(Errno::INVAL)?;
                stack.tcp_set_ttl(handle, ttl).map_err(errno)
            }
            Known::ReuseAddress | Known::PathMtu => Ok(()),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn get_option(&mut self, fd: i32, option: SocketOption) -> Result<Answer, Errno> {
        let known = Known::of(option).ok_or(Errno::NOPROTOOPT)?;
        let value = match known {
            Known::Error => {
                OptionValue::Number(self.take_error(fd).map_or(0, |errno| errno.0.into()))
            }
            Known::Information => return self.connection(fd).map(|_| Answer::of(0)),
            Known::NoDelay => OptionValue::Number(i64::from(self.connection(fd)?.no_delay())),
            Known::KeepAlive => {
                OptionValue::Number(i64::from(self.connection(fd)?.keep_alive().is_some()))
            }
            _ => return Err(Errno::NOPROTOOPT),
        };
        Ok(Answer { result: Ok(0), output: Output::Option(value) })
    }
}

/// Linux's names of congestion controls, and ours.
pub(super) fn congestion(name: &str) -> Option<CongestionName> {
    match name {
        "reno" => Some(CongestionName::NewReno),
        name => name.parse().ok(),
    }
}

const fn number(value: &OptionValue) -> Result<i64, Errno> {
    match value {
        OptionValue::Number(number) => Ok(*number),
        _ => Err(Errno::INVAL),
    }
}

fn size(value: &OptionValue) -> Result<usize, Errno> {
    usize::try_from(number(value)?).map_err(|_| Errno::INVAL)
}

fn byte(value: &OptionValue) -> Result<u8, Errno> {
    u8::try_from(number(value)?).map_err(|_| Errno::INVAL)
}

/// Milliseconds; zero leaves it to the host.
fn user_timeout(value: &OptionValue) -> Result<Option<Duration>, Errno> {
    let millis = u64::try_from(number(value)?).map_err(|_| Errno::INVAL)?;
    Ok((millis > 0).then(|| Duration::from_millis(millis)))
}

fn linger(value: &OptionValue) -> Result<Option<Duration>, Errno> {
    match value {
        OptionValue::Linger { on: false, .. } => Ok(None),
        OptionValue::Linger { seconds, .. } => u64::try_from(*seconds)
            .map(|seconds| Some(Duration::from_secs(seconds)))
            .map_err(|_| Errno::INVAL),
        _ => Err(Errno::INVAL),
    }
}

fn changed(keep_alive: KeepAlive, known: Known, value: &OptionValue) -> Result<KeepAlive, Errno> {
    let number = u32::try_from(number(value)?).map_err(|_| Errno::INVAL)?;
    let seconds = Duration::from_secs(number.into());
    Ok(match known {
        Known::KeepIdle => KeepAlive { idle: seconds, ..keep_alive },
        Known::KeepInterval => KeepAlive { interval: seconds, ..keep_alive },
        _ => KeepAlive { probes: number, ..keep_alive },
    })
}
