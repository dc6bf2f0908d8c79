//! Expressions in assertions: parsing and evaluation.

use super::operator::{compare, sum};
use super::text::{self, FormatValue};
use super::{CodeError, Fields, SyntaxError, names};
use crate::syntax::cursor::Cursor;

/// Arithmetic operators of Python, in groups of increasing precedence. Operators are tried in this
/// order, so `**` and `//` come before `*` and `/`, which are their beginnings. `**` is recognised
/// only to be refused.
const LEVELS: [&[&str]; 4] = [&["|"], &["&"], &["+", "-"], &["**", "*", "//", "/", "%"]];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Text(String),
    /// A format string with its values: `'cwnd %d' % tcpi_snd_cwnd`, or with a tuple.
    Formatted(String, Vec<Self>),
    /// A tuple: `(a, b)`.
    Tuple(Vec<Self>),
    /// A field of `struct tcp_info`, without its prefix `tcpi_`.
    Field(String),
    Not(Box<Self>),
    Negative(Box<Self>),
    // Operands that are all joined by `and`, or all by `or`, are in one list: `a and b and c` is
    // `All([a, b, c])`. A tree of pairs would need a recursion as deep as the chain is long.
    All(Vec<Self>),
    AnyOf(Vec<Self>),
    /// A chain of operators of equal precedence: `a + b - c`.
    Sum(Box<Self>, Vec<(&'static str, Self)>),
    /// A chain of comparisons. As in Python, `a < b <= c` means `a < b and b <= c`.
    Chain(Box<Self>, Vec<(&'static str, Self)>),
    Call(&'static str, Vec<Self>),
}

impl Expression {
    /// Parses an expression.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        cursor.nested(|cursor| Self::read_joined(cursor, "or", Self::read_and, Self::AnyOf))
    }

    fn read_and(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        Self::read_joined(cursor, "and", Self::read_not, Self::All)
    }

    /// Parses one or more expressions separated by `word`. `read` parses each of them. A single one
    /// is returned as it is; several are combined by `join`.
    fn read_joined(
        cursor: &mut Cursor<'_>,
        word: &str,
        read: impl Fn(&mut Cursor<'_>) -> Result<Self, SyntaxError>,
        join: impl FnOnce(Vec<Self>) -> Self,
    ) -> Result<Self, SyntaxError> {
        let first = read(cursor)?;
        if cursor.peek_word() != Some(word) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while cursor.take_word(word) {
            parts.push(read(cursor)?);
        }
        Ok(join(parts))
    }

    fn read_not(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        if cursor.take_word("not") {
            return cursor.nested(|cursor| Ok(Self::Not(Box::new(Self::read_not(cursor)?))));
        }
        let first = Self::read_arithmetic(cursor, &LEVELS)?;
        let mut rest = Vec::new();
        while let Some(operator) =
            ["==", "!=", "<=", ">=", "<", ">"].into_iter().find(|&known| cursor.take(known))
        {
            rest.push((operator, Self::read_arithmetic(cursor, &LEVELS)?));
        }
        Ok(if rest.is_empty() { first } else { Self::Chain(Box::new(first), rest) })
    }

    /// Parses parts combined by arithmetic operators. `levels` contains the operators by increasing
    /// precedence.
    fn read_arithmetic(
        cursor: &mut Cursor<'_>,
        levels: &[&[&'static str]],
    ) -> Result<Self, SyntaxError> {
        let Some((operators, closer)) = levels.split_first() else {
            return Self::read_factor(cursor);
        };
        let first = Self::read_arithmetic(cursor, closer)?;
        let mut rest = Vec::new();
        while let Some(operator) = operators.iter().find(|operator| cursor.take(operator)) {
            if *operator == "**" {
                return Err(cursor.error("powers are not supported: write + - * / // % & |"));
            }
            rest.push((*operator, Self::read_arithmetic(cursor, closer)?));
        }
        Ok(if rest.is_empty() { first } else { Self::Sum(Box::new(first), rest) })
    }

    fn read_factor(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        match cursor.peek() {
            Some('-') => {
                cursor.want("-")?;
                cursor.nested(|cursor| Ok(Self::Negative(Box::new(Self::read_factor(cursor)?))))
            }
            Some('(') => {
                cursor.want("(")?;
                let mut list = cursor.list(")", Self::read)?;
                match list.len() {
                    0 => Err(cursor.error("an empty tuple has no value")),
                    1 => Ok(list.remove(0)),
                    _ => Ok(Self::Tuple(list)),
                }
            }
            Some('\'' | '"') => Self::read_text(cursor),
            Some(next) if next.is_ascii_digit() || next == '.' => number(cursor),
            _ => {
                let word = cursor.word("a number, a name or a bracket")?;
                Self::named(word, cursor)
            }
        }
    }

    /// Parses a string, and the values after `%` if it is a format. Adjacent strings are
    /// concatenated, as in Python.
    fn read_text(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let mut text = String::new();
        while let Some(quote @ ('\'' | '"')) = cursor.peek() {
            let quote = if quote == '"' { "\"" } else { "'" };
            text.push_str(cursor.enclosed(quote, quote)?);
        }
        if !cursor.take("%") {
            return Ok(Self::Text(text));
        }
        Ok(match cursor.nested(Self::read_factor)? {
            Self::Tuple(values) => Self::Formatted(text, values),
            value => Self::Formatted(text, vec![value]),
        })
    }

    fn named(word: &str, cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        if let Some(field) = word.strip_prefix("tcpi_") {
            return Ok(Self::Field(field.to_owned()));
        }
        if let Some(value) = names::value(word) {
            return Ok(Self::Number(value));
        }
        match ["abs", "min", "max"].into_iter().find(|&known| known == word) {
            Some(function) => {
                cursor.want("(")?;
                let arguments = cursor.list(")", Self::read)?;
                if arguments.is_empty() {
                    return Err(cursor.error(format!("{function} of nothing")));
                }
                Ok(Self::Call(function, arguments))
            }
            None => Err(cursor.error(format!(
                "`{word}` is not known: names are tcpi_…, TCP_ESTABLISHED and the other states, \
                 TCP_CA_Open …"
            ))),
        }
    }

    /// Formats the value of the expression as text, for `print` and messages.
    pub(super) fn to_text(&self, field: Fields<'_>) -> Result<String, CodeError> {
        Ok(match self {
            Self::Text(text) => text.clone(),
            Self::Tuple(list) => {
                let words: Result<Vec<_>, _> =
                    list.iter().map(|expression| expression.to_text(field)).collect();
                words?.join(" ")
            }
            Self::Formatted(template, values) => {
                let formatted: Result<Vec<_>, _> =
                    values.iter().map(|value| value.to_format_value(field)).collect();
                text::format(template, &formatted?).map_err(CodeError::Undefined)?
            }
            expression => expression.value(field)?.to_string(),
        })
    }

    fn to_format_value(&self, field: Fields<'_>) -> Result<FormatValue, CodeError> {
        match self {
            Self::Text(_) | Self::Formatted(..) | Self::Tuple(_) => {
                self.to_text(field).map(FormatValue::Text)
            }
            expression => expression.value(field).map(FormatValue::Number),
        }
    }

    /// Evaluates the expression as a number.
    pub(super) fn value(&self, field: Fields<'_>) -> Result<f64, CodeError> {
        let truth = |is: bool| f64::from(u8::from(is));
        Ok(match self {
            Self::Number(number) => *number,
            Self::Text(_) | Self::Formatted(..) | Self::Tuple(_) => {
                return Err(CodeError::Undefined("a text or a tuple is not a number"));
            }
            #[allow(clippy::cast_precision_loss, reason = "the values are far below 2^53")]
            Self::Field(name) => {
                field(name).ok_or_else(|| CodeError::Unknown(name.clone()))? as f64
            }
            Self::Not(inner) => truth(inner.value(field)? == 0.0),
            Self::Negative(inner) => -inner.value(field)?,
            Self::All(parts) => truth(!Self::any(parts, false, field)?),
            Self::AnyOf(parts) => truth(Self::any(parts, true, field)?),
            Self::Sum(first, rest) => {
                let mut total = first.value(field)?;
                for (operator, right) in rest {
                    total = sum(operator, total, right.value(field)?)?;
                }
                total
            }
            Self::Chain(first, rest) => {
                let mut left = first.value(field)?;
                for (operator, right) in rest {
                    let right = right.value(field)?;
                    if !compare(operator, left, right) {
                        return Ok(0.0);
                    }
                    left = right;
                }
                1.0
            }
            Self::Call(function, arguments) => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(argument.value(field)?);
                }
                match *function {
                    "abs" => values[0].abs(),
                    "min" => values.into_iter().fold(f64::INFINITY, f64::min),
                    _ => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
                }
            }
        })
    }

    /// Returns whether at least one of `parts` has the truth value `truth`. Evaluation ends with
    /// the first such part, as for `and` and `or` in Python.
    fn any(parts: &[Self], truth: bool, field: Fields<'_>) -> Result<bool, CodeError> {
        for part in parts {
            if (part.value(field)? != 0.0) == truth {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the values of the fields in the expression as ` (tcpi_snd_cwnd = 7)`, each field
    /// once.
    pub(super) fn fields(&self, field: Fields<'_>) -> String {
        let mut names = Vec::new();
        self.collect(&mut names);
        names.sort_unstable();
        names.dedup();
        let known =
            names.into_iter().filter_map(|name| Some(format!("tcpi_{name} = {}", field(name)?)));
        let list = known.collect::<Vec<_>>().join(", ");
        if list.is_empty() { list } else { format!(" ({list})") }
    }

    fn collect<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Formatted(_, parts) | Self::Tuple(parts) => {
                parts.iter().for_each(|part| part.collect(names));
            }
            Self::Field(name) => names.push(name),
            Self::Not(inner) | Self::Negative(inner) => inner.collect(names),
            Self::All(parts) | Self::AnyOf(parts) => {
                parts.iter().for_each(|part| part.collect(names));
            }
            Self::Sum(first, rest) => {
                first.collect(names);
                rest.iter().for_each(|(_, right)| right.collect(names));
            }
            Self::Chain(first, rest) => {
                first.collect(names);
                rest.iter().for_each(|(_, right)| right.collect(names));
            }
            Self::Call(_, arguments) => {
                arguments.iter().for_each(|argument| argument.collect(names));
            }
        }
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<Expression, SyntaxError> {
    if cursor.sees("0x") {
        let number: u32 = cursor.number("a number")?;
        return Ok(Expression::Number(f64::from(number)));
    }
    let text = cursor.take_while(|next| next.is_ascii_digit() || next == '.');
    match text.parse() {
        Ok(number) => Ok(Expression::Number(number)),
        Err(_) => cursor.expected("a number"),
    }
}
