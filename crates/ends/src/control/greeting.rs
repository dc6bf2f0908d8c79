//! The first line of a connection to a sink (the greeting), which determines the purpose of the
//! connection.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Prefix of every greeting, in all versions.
const PRODUCT: &str = "LINERATE/";
/// The version of the control protocol.
const VERSION: &str = "1";
/// The greeting by which a sweep opens a control connection.
pub(crate) const CONTROL: &str = "LINERATE/1 CONTROL\n";
/// The reply of a sink that accepts a control connection.
pub(crate) const SINK: &str = "LINERATE/1 SINK\n";
/// Maximum length of a greeting in bytes, including its line end.
pub(crate) const LONGEST: usize = 256;

/// A random number in the greeting of a data connection, which tells the sink to which run the
/// connection belongs. Other peers cannot guess it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(pub(crate) u128);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The error of a token that is not 32 hexadecimal digits.
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

/// Returns the greeting of the data connection for the run that `token` identifies.
pub(crate) fn data(token: Token) -> String {
    format!("{PRODUCT}{VERSION} DATA {token}\n")
}

/// Returns the line by which a sink rejects a connection.
pub(crate) fn busy(reason: &str) -> String {
    format!("{PRODUCT}{VERSION} BUSY {reason}\n")
}

/// The purpose of a connection to a sink, according to its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The purpose is not known yet, because too few bytes have arrived.
    Undecided,
    /// A connection without a greeting: the first byte is already data of a program other than
    /// linerate.
    Plain,
    /// A control connection.
    Control {
        /// Length of the greeting in bytes.
        length: usize,
    },
    /// The data connection of a run.
    Data {
        /// The token that identifies the run.
        token: Token,
        /// Length of the greeting in bytes.
        length: usize,
    },
    /// A greeting of another version, or an invalid greeting.
    Foreign,
}

/// Determines the purpose of a connection from its first bytes. If they do not begin with
/// [`PRODUCT`], the connection has no greeting, and the bytes are data.
pub(crate) fn classify(first: &[u8]) -> Opening {
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

/// The reply of a peer to the greeting [`CONTROL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The acceptance by a sink of this protocol version.
    Sink,
    /// The rejection by a sink, with the reason.
    Busy(String),
    /// The reply of a sink of another protocol version, with the version.
    OtherVersion(String),
    /// The reply of another program, or a reply that the protocol does not define.
    NotLinerate,
}

/// Parses the reply to the greeting [`CONTROL`], given without its line end.
pub(crate) fn parse_answer(line: &str) -> Answer {
    let Some(rest) = line.strip_prefix(PRODUCT) else {
        return Answer::NotLinerate;
    };
    match rest.split_once(' ') {
        Some((VERSION, "SINK")) => Answer::Sink,
        Some((VERSION, said)) => match said.strip_prefix("BUSY ") {
            Some(reason) => Answer::Busy(reason.to_owned()),
            None => Answer::NotLinerate,
        },
        Some((version, _)) => Answer::OtherVersion(version.to_owned()),
        None => Answer::NotLinerate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn data_without_our_prefix_is_plain_from_its_first_byte() {
        assert_eq!(classify(b"G"), Opening::Plain);
        assert_eq!(classify(b"LINERATES are data"), Opening::Plain);
        assert_eq!(classify(&[0; 4_096]), Opening::Plain);
    }

    #[test]
    fn a_greeting_can_arrive_byte_by_byte() {
        let whole = CONTROL.as_bytes();
        for length in 0..whole.len() {
            assert_eq!(classify(&whole[..length]), Opening::Undecided, "{length}");
        }
        assert_eq!(classify(whole), Opening::Control { length: whole.len() });
    }

    #[test]
    fn data_can_follow_its_greeting_immediately() {
        let token = Token(0xfeed);
        let mut bytes = data(token).into_bytes();
        let length = bytes.len();
        bytes.extend([b'\n'; 500]);
        assert_eq!(classify(&bytes), Opening::Data { token, length });
    }

    #[test]
    fn an_invalid_greeting_is_foreign_and_is_not_waited_for() {
        let mut endless = PRODUCT.as_bytes().to_vec();
        endless.resize(LONGEST, b'x');
        assert_eq!(classify(&endless), Opening::Foreign);
        for line in
            ["LINERATE/2 CONTROL\n", "LINERATE/1 DATA 12\n", "LINERATE/1 \n", "LINERATE/1\n"]
        {
            assert_eq!(classify(line.as_bytes()), Opening::Foreign, "{line}");
        }
        assert_eq!(classify(b"LINERATE/\xff\xff\n"), Opening::Foreign);
        let signed = format!("LINERATE/1 DATA +{:031x}\n", 1);
        assert_eq!(classify(signed.as_bytes()), Opening::Foreign);
    }

    proptest! {
        #[test]
        fn a_decision_does_not_change_when_more_bytes_arrive(
            start in prop_oneof![
                Just(CONTROL.to_owned()),
                Just(data(Token(7))),
                Just(PRODUCT.to_owned()),
                ".{0,20}",
            ],
            rest in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut bytes = start.into_bytes();
            bytes.extend(rest);
            let mut decided = None;
            for length in 0..=bytes.len() {
                let opening = classify(&bytes[..length]);
                match decided {
                    None if opening == Opening::Undecided => prop_assert!(length < LONGEST),
                    None => decided = Some(opening),
                    Some(decided) => prop_assert_eq!(opening, decided),
                }
            }
        }
    }

    #[test]
    fn a_sink_is_recognised_by_its_answer() {
        assert_eq!(parse_answer(SINK.trim_end()), Answer::Sink);
        assert_eq!(parse_answer(busy("full house").trim_end()), Answer::Busy("full house".into()));
        assert_eq!(parse_answer("LINERATE/2 SINK"), Answer::OtherVersion("2".into()));
        assert_eq!(parse_answer("SSH-2.0-OpenSSH_9.6"), Answer::NotLinerate);
        assert_eq!(parse_answer("LINERATE/1"), Answer::NotLinerate);
    }
}
