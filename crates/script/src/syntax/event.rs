//! Parses scripts: the settings at the head, and the events after it.

use super::SyntaxError;
use super::call::{CallEvent, ReturnTime, call};
use super::code::Code;
use super::cursor::Cursor;
use super::packet::{Packet, inbound, outbound};
use super::settings::Settings;
use super::shell::{ShellStep, shell};
use core::fmt;
use linerate_units::Duration;
use std::path::Path;

/// A parsed script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Settings from the head of the script.
    pub settings: Settings,
    /// Events in the order of the script.
    pub events: Vec<Event>,
}

/// An event of a script: an action and its time.
#[derive(Clone, Debug)]
pub struct Event {
    /// Number of the script's line with the event, counted from 1.
    pub line: u32,
    /// Time of the event.
    pub when: When,
    /// The action: something that happens, or is expected to happen.
    pub action: Action,
}

/// The time of an event, as the script writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A time from the start of the script: `0.1`.
    At(Duration),
    /// A time after the previous event: `+.1`.
    After(Duration),
    /// Any time: `*`.
    Any,
    /// A time between two times from the start of the script: `0.1~0.2`.
    Between(Duration, Duration),
    /// A time between two times after the previous event: `+.1~+.2`.
    AfterBetween(Duration, Duration),
}

/// An action of the script, such as sending a packet, or an action that the script expects of the
/// host.
#[derive(Clone, Debug)]
pub enum Action {
    /// `<`: a packet arrives at the host.
    Inbound(Packet),
    /// `>`: the host sends a packet.
    Outbound(Packet),
    /// A system call of the application.
    Call(CallEvent),
    /// Assertions about the current connection: `%{ … }%`.
    Code(Code),
    /// Settings of the host, given as shell commands in back-quotes.
    Shell(Vec<ShellStep>),
}

impl Script {
    /// Parses a script. `folder` is the folder of the shell scripts that it names.
    ///
    /// # Errors
    /// [`SyntaxError`] with the line of the error.
    pub fn parse(text: &str, folder: Option<&Path>) -> Result<Self, SyntaxError> {
        Self::parse_with(text, folder, &[])
    }

    /// Parses a script. Each of `options`, such as `--ignore_push`, takes precedence over the
    /// options at the head of the script.
    ///
    /// # Errors
    /// [`SyntaxError`] with the line of the error.
    pub fn parse_with(
        text: &str,
        folder: Option<&Path>,
        options: &[String],
    ) -> Result<Self, SyntaxError> {
        let mut head = Cursor::new(text, 1);
        let mut settings = Settings::default();
        settings.read_head(&mut head)?;
        for option in options {
            settings.read(&mut Cursor::new(option, 1))?;
        }
        settings.check(&head)?;
        let line = head.line();
        let body = settings.definitions.apply(head.rest()).map_err(|what| head.error(what))?;
        let mut cursor = Cursor::new(&body, line);
        let mut events = Vec::new();
        while !cursor.is_at_end() {
            events.push(Event::read(&mut cursor, folder)?);
        }
        if events.is_empty() {
            return Err(cursor.error("the script is empty"));
        }
        Ok(Self { settings, events })
    }

    /// Returns the minimum duration of the script: every event happens at the earliest time that
    /// the script permits.
    #[must_use]
    pub fn least_time(&self) -> Duration {
        self.events.iter().fold(Duration::ZERO, |now, event| match event.when {
            When::At(at) | When::Between(at, _) => now.max(at),
            When::After(after) | When::AfterBetween(after, _) => now + after,
            When::Any => now,
        })
    }
}

impl Event {
    fn read(cursor: &mut Cursor<'_>, folder: Option<&Path>) -> Result<Self, SyntaxError> {
        let line = cursor.line();
        let when = When::read(cursor)?;
        let action = match cursor.peek() {
            Some('<') => {
                cursor.want("<")?;
                inbound(cursor).map(Action::Inbound)?
            }
            Some('>') => {
                cursor.want(">")?;
                outbound(cursor).map(Action::Outbound)?
            }
            Some('`') => {
                let line = cursor.line();
                Action::Shell(shell(cursor.enclosed("`", "`")?, line, folder)?)
            }
            Some('%') => {
                let line = cursor.line();
                Action::Code(Code::read(cursor.enclosed("%{", "}%")?, line)?)
            }
            _ => {
                let ends = read_end(cursor, when)?;
                Action::Call(call(cursor, ends)?)
            }
        };
        let is_range = matches!(when, When::Any | When::Between(..) | When::AfterBetween(..));
        if is_range && !matches!(action, Action::Outbound(_)) {
            return Err(SyntaxError {
                line,
                what: "only a packet from the host (>) may have an uncertain time".into(),
            });
        }
        Ok(Self { line, when, action })
    }
}

impl When {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        if cursor.take("*") {
            return Ok(Self::Any);
        }
        let relative = cursor.take("+");
        if !relative && !cursor.sees_moment() {
            // Only shell lines and assertions may omit the time. They take effect at the time of
            // the previous event.
            return match cursor.peek() {
                Some('`' | '%') => Ok(Self::After(Duration::ZERO)),
                _ => cursor.expected("a time, such as 0.1, +.1 or *"),
            };
        }
        let first = cursor.seconds()?;
        if !cursor.take("~") {
            return Ok(if relative { Self::After(first) } else { Self::At(first) });
        }
        if relative {
            cursor.want("+")?;
        }
        let last = cursor.seconds()?;
        if last < first {
            return Err(cursor.error("the second time is before the first"));
        }
        Ok(if relative { Self::AfterBetween(first, last) } else { Self::Between(first, last) })
    }
}

/// Parses `...0.2`, the time at which a waiting call returns. Returns `None` if `...` does not come
/// next.
fn read_end(cursor: &mut Cursor<'_>, when: When) -> Result<Option<ReturnTime>, SyntaxError> {
    if !cursor.take("...") {
        return Ok(None);
    }
    let _ = cursor.take("+");
    let end = cursor.seconds()?;
    let (start, ends) = match when {
        When::After(start) => (start, ReturnTime::After(end)),
        When::At(start) => (start, ReturnTime::At(end)),
        _ => return Err(cursor.error("a call with a return time needs a fixed start time")),
    };
    if end < start {
        Err(cursor.error("the call returns before it starts"))
    } else {
        Ok(Some(ends))
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Any => f.write_str("*"),
            Self::At(at) => f.write_str(&seconds(at)),
            Self::After(after) => write!(f, "+{}", seconds(after)),
            Self::Between(first, last) => write!(f, "{}~{}", seconds(first), seconds(last)),
            Self::AfterBetween(first, last) => write!(f, "+{}~+{}", seconds(first), seconds(last)),
        }
    }
}

/// Formats a time as seconds without trailing zeros, as scripts write it.
pub(crate) fn seconds(span: Duration) -> String {
    let (whole, nanos) = (span.as_nanos() / 1_000_000_000, span.as_nanos() % 1_000_000_000);
    let text = format!("{whole}.{nanos:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "// a rule\n--tolerance_usecs=5000\n`sysctl -q net.ipv4.tcp_sack=0`\n\
        0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
        0...0.2 connect(3, ..., ...) = 0\n\
        *  > S 0:0(0) <...>\n\
        +.1 < S. 0:0(0) ack 1 win 100 <mss 1460>\n\
        +0~+.05 > . 1:1(0) ack 1\n\
        +0 < icmp unreachable port_unreachable [1:2(1)]\n\
        +0 %{ assert tcpi_snd_cwnd == 10 }%";

    #[test]
    fn a_script_has_settings_and_events() {
        let script = Script::parse(SCRIPT, None).unwrap();
        assert_eq!(script.settings.tolerance, Duration::from_millis(5));
        let whens: Vec<_> = script.events.iter().map(|event| event.when.to_string()).collect();
        assert_eq!(whens, ["+0", "0", "0", "*", "+0.1", "+0~+0.05", "+0", "+0"]);
        let lines: Vec<_> = script.events.iter().map(|event| event.line).collect();
        assert_eq!(lines, [3, 4, 5, 6, 7, 8, 9, 10]);
        let Action::Call(call) = &script.events[2].action else { panic!("a call") };
        assert_eq!(call.ends, Some(ReturnTime::At(Duration::from_millis(200))));
        assert_eq!(script.least_time(), Duration::from_millis(100));
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        for (text, line, says) in [
            ("", 1, "empty"),
            ("0 close(3) = 0\n0...", 2, "a time in seconds"),
            ("\n* < . 1:1(0) win 5", 2, "uncertain time"),
            ("0 < . 1:1(0) win 5 <...>", 1, "<...> is for packets from the host"),
            ("0 > gre: udp (5)", 1, "not in tunnels"),
            ("0 > [hopopts] udp (5)", 1, "for packets to the host"),
            ("0 < [compressed] . 1:1(0)", 1, "as far as possible"),
            ("0 < [ect01] . 1:1(0)", 1, "write ect0 or ect1"),
            ("0 > [lost] . 1:1(0)", 1, "packets to the host"),
            ("close(3) = 0", 1, "expected a time"),
            ("0 `reboot`", 1, "is not run"),
            ("0.3...0.2 read(3, ..., 1) = 1", 1, "before it starts"),
            ("0.3~0.2 > . 1:1(0)", 1, "before the first"),
            ("--remote_ip=2001:db8::1\n0 close(3) = 0", 2, "different IP versions"),
            ("--line=slip\n--mtu=1501\n0 close(3) = 0", 3, "at most 1500"),
            ("--nonsense=1\n0 close(3) = 0", 1, "--nonsense is not supported"),
            ("0 < . 1:65497(65496)", 1, "room for 65495"),
            ("0 < . 1:65485(65484) <TS val 1 ecr 0>", 1, "room for 65483"),
            ("0 < icmp unreachable port_unreachable [1:65497(65496)]", 1, "room for 65495"),
        ] {
            let error = Script::parse(text, None).unwrap_err();
            assert!(error.line == line && error.what.contains(says), "{text}: {error}");
        }
    }
}
