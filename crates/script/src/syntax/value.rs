//! Parses the arguments of system calls.

use super::SyntaxError;
use super::cursor::Cursor;
use super::names::{constant, errno};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// An argument of a system call, as the script writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Any value: `...`.
    Ignored,
    /// A number, or constants combined by `|`.
    Number(i64),
    /// A word that is not a constant.
    Word(String),
    /// A quoted string.
    Text(String),
    /// A list: `[…]`.
    List(Vec<Self>),
    /// A structure: `{…}`.
    Braces(Vec<Self>),
    /// A named field: `name = value`, or `name(…) = value`, where the part in brackets is ignored.
    Named(String, Box<Self>),
    /// A function call: `name(…)`.
    Applied(String, Vec<Self>),
}

impl Value {
    /// Parses an argument of a system call.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let first = Self::read_alone(cursor)?;
        if !cursor.sees("|") {
            return Ok(first);
        }
        let mut sum = first.number(cursor)?;
        while cursor.take("|") {
            sum |= Self::read_alone(cursor)?.number(cursor)?;
        }
        Ok(Self::Number(sum))
    }

    fn read_alone(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        if cursor.take("...") {
            return Ok(Self::Ignored);
        }
        match cursor.peek() {
            Some('"') => text(cursor),
            Some('[') => {
                cursor.want("[")?;
                cursor.nested(|cursor| cursor.list("]", Self::read)).map(Self::List)
            }
            Some('{') => {
                cursor.want("{")?;
                cursor.nested(|cursor| cursor.list("}", Self::read)).map(Self::Braces)
            }
            Some(first) if first.is_ascii_digit() || first == '-' => {
                cursor.integer("a number").map(Self::Number)
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => word(cursor),
            _ => cursor.expected("an argument"),
        }
    }

    /// Returns the value as a number, or the error that a number is needed.
    pub(super) fn number(&self, cursor: &Cursor<'_>) -> Result<i64, SyntaxError> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Word(word) => constant(word)
                .ok_or_else(|| cursor.error(format!("{word} is not a known constant"))),
            Self::List(list) if list.len() == 1 => list[0].number(cursor),
            _ => Err(cursor.error("a number or a constant is expected")),
        }
    }

    /// Returns the value as an address, or `None` for `...`.
    pub(super) fn address(&self, cursor: &Cursor<'_>) -> Result<Option<SocketAddr>, SyntaxError> {
        let wrong = || {
            cursor.error(
                "an address is written `...`, {sa_family = AF_INET, sin_port = htons(80), \
                 sin_addr = inet_addr(\"192.0.2.1\")} or {sa_family = AF_INET6, sin6_port = \
                 htons(80), sin6_addr = inet_pton(\"2001:db8::1\")}",
            )
        };
        match self {
            Self::Ignored => Ok(None),
            Self::Braces(fields) => address(fields).map(Some).ok_or_else(wrong),
            _ => Err(wrong()),
        }
    }

    /// Returns the value of the field `name` in a structure; `None` if there is no such field.
    pub(super) fn field<'a>(fields: &'a [Self], name: &str) -> Option<&'a Self> {
        fields.iter().find_map(|field| match field {
            Self::Named(known, value) if known == name => Some(&**value),
            _ => None,
        })
    }
}

fn text(cursor: &mut Cursor<'_>) -> Result<Value, SyntaxError> {
    let mut whole = String::new();
    while cursor.sees("\"") {
        whole.push_str(cursor.enclosed("\"", "\"")?);
    }
    // `...` after a text means that the actual text may be longer than the expected one. It is
    // ignored, because a comparison always ends at the end of the expected text.
    let _ = cursor.take("...");
    Ok(Value::Text(whole))
}

fn word(cursor: &mut Cursor<'_>) -> Result<Value, SyntaxError> {
    let word = cursor.word("a name")?.to_owned();
    let applied = if cursor.take("(") {
        Some(cursor.nested(|cursor| cursor.list(")", Value::read))?)
    } else {
        None
    };
    if cursor.take("=") {
        let value = cursor.nested(Value::read)?;
        return Ok(Value::Named(word, Box::new(value)));
    }
    Ok(match applied {
        Some(arguments) => Value::Applied(word, arguments),
        None => {
            let number = constant(&word).or_else(|| errno(&word).map(|errno| errno.0.into()));
            number.map_or(Value::Word(word), Value::Number)
        }
    })
}

/// Parses `{sa_family = AF_INET, sin_port = htons(80), sin_addr = inet_addr("192.0.2.1")}`, or the
/// corresponding fields of an IPv6 address. Returns `None` if a field is missing or has another
/// form.
fn address(fields: &[Value]) -> Option<SocketAddr> {
    let Value::Number(family) = Value::field(fields, "sa_family")? else { return None };
    let (port, host) = match family {
        2 => ("sin_port", "sin_addr"),
        10 => ("sin6_port", "sin6_addr"),
        _ => return None,
    };
    let Value::Applied(_, port) = Value::field(fields, port)? else { return None };
    let Value::Applied(_, host) = Value::field(fields, host)? else { return None };
    let ([Value::Number(port)], [Value::Text(host)]) = (&port[..], &host[..]) else { return None };
    let port = u16::try_from(*port).ok()?;
    Some(match family {
        2 => SocketAddr::new(host.parse::<Ipv4Addr>().ok()?.into(), port),
        _ => SocketAddr::new(host.parse::<Ipv6Addr>().ok()?.into(), port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, SyntaxError> {
        Value::read(&mut Cursor::new(text, 1))
    }

    #[test]
    fn constants_are_joined() {
        assert_eq!(read("O_RDWR|O_NONBLOCK"), Ok(Value::Number(0o4002)));
        assert_eq!(read("[ECONNRESET]"), Ok(Value::List(vec![Value::Number(104)])));
        assert!(read("O_RDWR|NONSENSE").is_err());
    }

    #[test]
    fn an_address_is_parsed() {
        let text =
            "{sa_family = AF_INET, sin_port = htons(80), sin_addr = inet_addr(\"192.0.2.1\")}";
        let cursor = Cursor::new("", 1);
        assert_eq!(
            read(text).unwrap().address(&cursor),
            Ok(Some("192.0.2.1:80".parse::<SocketAddr>().unwrap()))
        );
        let text = "{sa_family = AF_INET6, sin6_port = htons(80), sin6_addr = inet_pton(\"::1\")}";
        let read_v6 = read(text).unwrap().address(&cursor);
        assert_eq!(read_v6, Ok(Some("[::1]:80".parse::<SocketAddr>().unwrap())));
        assert_eq!(read("...").unwrap().address(&cursor), Ok(None));
        assert!(read("{sa_family = AF_INET6}").unwrap().address(&cursor).is_err());
    }

    #[test]
    fn nesting_is_limited() {
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&"a=".repeat(100_000)).is_err());
    }
}
