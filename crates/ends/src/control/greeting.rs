//! The first line of a connection, which says what the connection is for.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How a connection of ours opens, whatever its version.
const PRODUCT: &str = "LINERATE/";
/// The version of the control connection that this program speaks.
const VERSION: &str = "1";
/// What a sweep says first on a control connection.
pub(crate) const CONTROL: &str = "LINERATE/1 CONTROL\n";
/// What a sink answers to it.
pub(crate) const SINK: &str = "LINERATE/1 SINK\n";
/// No greeting is longer, with its line end.
pub(crate) const LONGEST: usize = 256;

/// The secret that ties a data connection to the run it was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(pub(crate) u128);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no token")]
pub(crate) struct ParseTokenError;

impl FromStr for Token {
    type Err = ParseTokenError;
    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ParseTokenError);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ParseTokenError)
    }
}

/// The greeting of the data connection of a run.
pub(crate) fn data(token: Token) -> String {
    format!("{PRODUCT}{VERSION} DATA {token}\n")
}

/// The line with which a sink turns a connection away.
pub(crate) fn busy(reason: &str) -> String {
    format!("{PRODUCT}{VERSION} BUSY {reason}\n")
}

/// What the first bytes of a connection make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Too few bytes to know.
    Undecided,
    /// A plain peer: all of its bytes are data.
    Plain,
    /// A sweep that wants to ask for runs; `length` bytes were the greeting.
    Control {
        /// Bytes that the greeting took.
        length: usize,
    },
    /// The data of the run that `token` names; `length` bytes were the greeting.
    Data {
        /// Which run.
        token: Token,
        /// Bytes that the greeting took.
        length: usize,
    },
    /// One of ours, but of a release that speaks otherwise, or one whose greeting is damaged.
    Foreign,
}

/// Judges the first bytes of a connection. Whatever does not begin as ours begins is plain data.
pub(crate) fn judge(first: &[u8]) -> Opening {
    let common = first.len().min(PRODUCT.len());
    if first[..common] != PRODUCT.as_bytes()[..common] {
        return Opening::Plain;
    }
    let line = &first[..first.len().min(LONGEST)];
    let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
        return if first.len() < LONGEST { Opening::Undecided } else { Opening::Foreign };
    };
    let length = end + 1;
    let words = std::str::from_utf8(&line[PRODUCT.len()..end]).unwrap_or("");
    match words.strip_prefix(VERSION).and_then(|rest| rest.strip_prefix(' ')) {
        Some("CONTROL") => Opening::Control { length },
        Some(rest) => match rest.strip_prefix("DATA ").and_then(|token| token.parse().ok()) {
            Some(token) => Opening::Data { token, length },
            None => Opening::Foreign,
        },
        None => Opening::Foreign,
    }
}

/// What a sink answered to [`CONTROL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A sink of our version: go on.
    Sink,
    /// A sink that takes no more, and why.
    Busy(String),
    /// One of ours of another release.
    OtherVersion(String),
    /// Something else altogether.
    Stranger,
}

/// Judges the line, without its end, that came back for [`CONTROL`].
pub(crate) fn judge_answer(line: &str) -> Answer {
    let Some(rest) = line.strip_prefix(PRODUCT) else {
        return Answer::Stranger;
    };
    match rest.split_once(' ') {
        Some((VERSION, "SINK")) => Answer::Sink,
        Some((VERSION, said)) => match said.strip_prefix("BUSY ") {
            Some(reason) => Answer::Busy(reason.to_owned()),
            None => Answer::Stranger,
        },
        Some((version, _)) => Answer::OtherVersion(version.to_owned()),
        None => Answer::Stranger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_begin_as_ours_is_plain_data_from_its_first_byte() {
        assert_eq!(judge(b"G"), Opening::Plain);
        assert_eq!(judge(b"LINERATES are trains"), Opening::Plain);
        assert_eq!(judge(&[0; 4_096]), Opening::Plain);
    }

    #[test]
    fn a_greeting_may_arrive_one_byte_at_a_time() {
        let whole = CONTROL.as_bytes();
        for length in 0..whole.len() {
            assert_eq!(judge(&whole[..length]), Opening::Undecided, "{length}");
        }
        assert_eq!(judge(whole), Opening::Control { length: whole.len() });
    }

    #[test]
    fn data_may_follow_its_greeting_at_once() {
        let token = Token(0xfeed);
        let mut bytes = data(token).into_bytes();
        let length = bytes.len();
        bytes.extend([b'\n'; 500]);
        assert_eq!(judge(&bytes), Opening::Data { token, length });
    }

    #[test]
    fn a_damaged_greeting_is_foreign_and_never_waited_for_forever() {
        let mut endless = PRODUCT.as_bytes().to_vec();
        endless.resize(LONGEST, b'x');
        assert_eq!(judge(&endless), Opening::Foreign);
        for line in
            ["LINERATE/2 CONTROL\n", "LINERATE/1 DATA 12\n", "LINERATE/1 \n", "LINERATE/1\n"]
        {
            assert_eq!(judge(line.as_bytes()), Opening::Foreign, "{line}");
        }
        assert_eq!(judge(b"LINERATE/\xff\xff\n"), Opening::Foreign);
        let signed = format!("LINERATE/1 DATA +{:031x}\n", 1);
        assert_eq!(judge(signed.as_bytes()), Opening::Foreign);
    }

    proptest! {
        #[test]
        fn what_is_decided_stays_decided_whatever_follows(
            start in prop_oneof![Just(CONTROL.to_owned()), Just(data(Token(7))), Just(PRODUCT.to_owned()), ".{0,20}"],
            rest in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut bytes = start.into_bytes();
            bytes.extend(rest);
            let mut decided = None;
            for length in 0..=bytes.len() {
                let opening = judge(&bytes[..length]);
                match decided {
                    None if opening == Opening::Undecided => prop_assert!(length < LONGEST),
                    None => decided = Some(opening),
                    Some(decided) => prop_assert_eq!(opening, decided),
                }
            }
        }
    }

    #[test]
    fn a_sink_is_told_from_a_stranger_by_its_answer() {
        assert_eq!(judge_answer(SINK.trim_end()), Answer::Sink);
        assert_eq!(judge_answer(busy("full house").trim_end()), Answer::Busy("full house".into()));
        assert_eq!(judge_answer("LINERATE/2 SINK"), Answer::OtherVersion("2".into()));
        assert_eq!(judge_answer("SSH-2.0-OpenSSH_9.6"), Answer::Stranger);
        assert_eq!(judge_answer("LINERATE/1"), Answer::Stranger);
    }
}
