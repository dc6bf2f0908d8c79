//! `%{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%`: the part of Python that scripts use to judge a
//! connection. There are numbers, comparisons and sums, and nothing that could do anything.

use super::SyntaxError;
use super::cursor::Cursor;
use std::fmt::Write;
use thiserror::Error;

/// Names of numbers that Linux's <linux/tcp.h> gives to states.
const NAMES: [(&str, f64); 22] = [
    ("True", 1.0),
    ("False", 0.0),
    ("TCP_ESTABLISHED", 1.0),
    ("TCP_SYN_SENT", 2.0),
    ("TCP_SYN_RECV", 3.0),
    ("TCP_FIN_WAIT1", 4.0),
    ("TCP_FIN_WAIT2", 5.0),
    ("TCP_TIME_WAIT", 6.0),
    ("TCP_CLOSE", 7.0),
    ("TCP_CLOSE_WAIT", 8.0),
    ("TCP_LAST_ACK", 9.0),
    ("TCP_LISTEN", 10.0),
    ("TCP_CLOSING", 11.0),
    ("TCP_CA_Open", 0.0),
    ("TCP_CA_Disorder", 1.0),
    ("TCP_CA_CWR", 2.0),
    ("TCP_CA_Recovery", 3.0),
    ("TCP_CA_Loss", 4.0),
    ("TCPI_OPT_TIMESTAMPS", 1.0),
    ("TCPI_OPT_ECN", 8.0),
    ("TCPI_OPT_ECN_SEEN", 16.0),
    ("TCPI_OPT_SYN_DATA", 32.0),
];

/// What stands between `%{` and `}%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    statements: Vec<Statement>,
}

/// The operators of arithmetic as Python has them, those that bind the least first, and of two that begin alike the
/// longer.
const LEVELS: [&[&str]; 4] = [&["|"], &["&"], &["+", "-"], &["**", "*", "//", "/", "%"]];

#[derive(Clone, Debug, PartialEq)]
enum Statement {
    Assert { line: u32, text: String, condition: Expression, message: Option<Vec<Expression>> },
    Print(Vec<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Number(f64),
    Text(String),
    /// A field of `struct tcp_info`, without its prefix.
    Field(String),
    Not(Box<Self>),
    Negative(Box<Self>),
    // Chains lie side by side, and not one in the other: however long they are, going through them is not deep.
    All(Vec<Self>),
    AnyOf(Vec<Self>),
    /// `a + b - c`, or products.
    Sum(Box<Self>, Vec<(&'static str, Self)>),
    /// `a < b <= c`: each neighbours are compared.
    Chain(Box<Self>, Vec<(&'static str, Self)>),
    Call(&'static str, Vec<Self>),
}

/// Why a piece of code does not let the script go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// An assertion does not hold.
    #[error("{text} does not hold{values}")]
    Assertion {
        /// The line of the assertion.
        line: u32,
        /// The assertion.
        text: String,
        /// What its names stand for, and its message.
        values: String,
    },
    /// The host does not know the number.
    #[error("there is no tcpi_{0} here")]
    Unknown(String),
    /// A division by zero, or a text where a number is wanted.
    #[error("this has no value: {0}")]
    Undefined(&'static str),
}

impl Code {
    /// Reads code whose first line has the number `line`.
    pub(super) fn read(text: &str, line: u32) -> Result<Self, SyntaxError> {
        let mut statements = Vec::new();
        // Comments of Python, which the rest of the language does not have.
        let text: String = text
            .lines()
            .map(|line| format!("{}\n", line.split('#').next().unwrap_or("")))
            .collect();
        let mut cursor = Cursor::without_comments(&text, line);
        while !cursor.is_at_end() {
            statements.push(Statement::read(&mut cursor)?);
            while cursor.take(";") {}
        }
        Ok(Self { statements })
    }

    /// Does what it says, with the fields that `field` knows. Returns what was printed.
    ///
    /// # Errors
    /// [`CodeError`]: an assertion that does not hold, or has no value.
    pub fn run(&self, field: &dyn Fn(&str) -> Option<u64>) -> Result<String, CodeError> {
        let mut printed = String::new();
        for statement in &self.statements {
            match statement {
                Statement::Print(list) => printed += &format!("{}\n", words(list, field)?),
                Statement::Assert { line, text, condition, message } => {
                    if condition.value(field)? == 0.0 {
                        let mut values = condition.fields(field);
                        if let Some(message) = message {
                            let _ = write!(values, ": {}", words(message, field)?);
                        }
                        return Err(CodeError::Assertion {
                            line: *line,
                            text: text.clone(),
                            values,
                        });
                    }
                }
            }
        }
        Ok(printed)
    }
}

fn words(list: &[Expression], field: &dyn Fn(&str) -> Option<u64>) -> Result<String, CodeError> {
    let words: Result<Vec<_>, _> = list
        .iter()
        .map(|expression| match expression {
            Expression::Text(text) => Ok(text.clone()),
            expression => expression.value(field).map(|value| value.to_string()),
        })
        .collect();
    Ok(words?.join(" "))
}

impl Statement {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let line = cursor.line();
        let start = cursor.rest();
        match cursor.word("assert or print")? {
            "assert" => {
                let condition = Expression::read(cursor)?;
                let text = start[..start.len() - cursor.rest().len()].trim().to_owned();
                let message =
                    if cursor.take(",") { Some(vec![Expression::read(cursor)?]) } else { None };
                Ok(Self::Assert { line, text, condition, message })
            }
            "print" => {
                cursor.want("(")?;
                Ok(Self::Print(cursor.list(")", Expression::read)?))
            }
            other => Err(cursor.error(format!(
                "`{other}`: of Python there are only assert and print, with numbers and tcpi_ names"
            ))),
        }
    }
}

impl Expression {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        cursor.nested(|cursor| Self::read_joined(cursor, "or", Self::read_and, Self::AnyOf))
    }

    fn read_and(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        Self::read_joined(cursor, "and", Self::read_not, Self::All)
    }

    /// Parts with `word` between them, which become one by `join`; one that is alone stays what it is.
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

    /// What is joined by operators of the first of `levels`, which bind the least, and by those of the others.
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
                return Err(cursor.error("there are no powers here: + - * / // % & |"));
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
                let inner = Self::read(cursor)?;
                cursor.want(")")?;
                Ok(inner)
            }
            Some('\'') => Ok(Self::Text(cursor.enclosed("'", "'")?.to_owned())),
            Some('"') => Ok(Self::Text(cursor.enclosed("\"", "\"")?.to_owned())),
            Some(next) if next.is_ascii_digit() || next == '.' => number(cursor),
            _ => {
                let word = cursor.word("a number, a name or a bracket")?;
                Self::named(word, cursor)
            }
        }
    }

    fn named(word: &str, cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        if let Some(field) = word.strip_prefix("tcpi_") {
            return Ok(Self::Field(field.to_owned()));
        }
        if let Some((_, value)) = NAMES.iter().find(|(known, _)| *known == word) {
            return Ok(Self::Number(*value));
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
                "`{word}` is not known: names of code are tcpi_…, TCP_ESTABLISHED and the other states, TCP_CA_Open …"
            ))),
        }
    }

    fn value(&self, field: &dyn Fn(&str) -> Option<u64>) -> Result<f64, CodeError> {
        let truth = |is: bool| f64::from(u8::from(is));
        Ok(match self {
            Self::Number(number) => *number,
            Self::Text(_) => return Err(CodeError::Undefined("a text is no number")),
            #[allow(clippy::cast_precision_loss, reason = "what scripts compare is far below 2^53")]
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

    /// Is one of `parts` as true as `truth`? Those behind it need no value.
    fn any(
        parts: &[Self],
        truth: bool,
        field: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<bool, CodeError> {
        for part in parts {
            if (part.value(field)? != 0.0) == truth {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// ` (tcpi_snd_cwnd = 7)`, for each name in it once.
    fn fields(&self, field: &dyn Fn(&str) -> Option<u64>) -> String {
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
            Self::Field(name) => names.push(name),
            Self::Not(inner) | Self::Negative(inner) => inner.collect(names),
            Self::All(parts) | Self::AnyOf(parts) => {
                parts.iter().for_each(|part| part.collect(names))
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
                arguments.iter().for_each(|argument| argument.collect(names))
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

fn sum(operator: &str, left: f64, right: f64) -> Result<f64, CodeError> {
    #[allow(clippy::cast_possible_truncation, reason = "a conversion of a float saturates")]
    let bits = |value: f64| value as i64;
    #[allow(clippy::cast_precision_loss, reason = "flags are small")]
    Ok(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "&" => (bits(left) & bits(right)) as f64,
        "|" => (bits(left) | bits(right)) as f64,
        _ if right == 0.0 => return Err(CodeError::Undefined("a division by zero")),
        "/" => left / right,
        "//" => (left / right).floor(),
        _ => left - right * (left / right).floor(),
    })
}

#[allow(clippy::float_cmp, reason = "whole numbers are compared, as Python would")]
fn compare(operator: &str, left: f64, right: f64) -> bool {
    match operator {
        "==" => left == right,
        "!=" => left != right,
        "<=" => left <= right,
        ">=" => left >= right,
        "<" => left < right,
        _ => left > right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<String, String> {
        let code = Code::read(text, 1).map_err(|error| error.to_string())?;
        let field = |name: &str| match name {
            "snd_cwnd" => Some(10),
            "rtt" => Some(100_000),
            "options" => Some(7),
            _ => None,
        };
        code.run(&field).map_err(|error| error.to_string())
    }

    #[test]
    fn assertions_are_judged() {
        for holds in [
            "assert tcpi_snd_cwnd == 10",
            "assert 9 < tcpi_snd_cwnd <= 10 and not tcpi_rtt < 5, 'never'",
            "assert tcpi_options & TCPI_OPT_TIMESTAMPS",
            "assert abs(tcpi_rtt - 99000) * 2 / 1000 == 2 or False",
            "assert (1 + 2) * 3 % 5 == 4; assert -1 < 0\nassert True # why not",
            "assert 0x10 == 16",
            "assert 10 - 2 - 3 == 5 and 24 / 4 / 3 == 2",
            "assert 3 == 7 // 2 and 4 | 1 & 2 == 4 and 5 & 1 + 2 == 1",
            "assert 1 or 1 / 0",
            "assert not (0 and 1 / 0)",
        ] {
            assert_eq!(run(holds), Ok(String::new()), "{holds}");
        }
    }

    #[test]
    fn what_does_not_hold_says_what_it_was() {
        assert_eq!(
            run("assert tcpi_snd_cwnd == 7, 'the window'").unwrap_err(),
            "assert tcpi_snd_cwnd == 7 does not hold (tcpi_snd_cwnd = 10): the window"
        );
        assert_eq!(run("assert tcpi_nothing == 7").unwrap_err(), "there is no tcpi_nothing here");
        assert_eq!(run("assert 1 / 0").unwrap_err(), "this has no value: a division by zero");
        assert_eq!(run("print('cwnd', tcpi_snd_cwnd)"), Ok("cwnd 10\n".to_owned()));
    }

    #[test]
    fn nothing_else_of_python_is_there() {
        for text in [
            "import os",
            "assert __import__('os')",
            "x = 1",
            "assert 2 ** 9",
            "assert [1]",
            "print 1",
        ] {
            assert!(Code::read(text, 1).is_err(), "{text}");
        }
        assert!(Code::read(&format!("assert {}1", "(".repeat(100_000)), 1).is_err());
        assert!(Code::read(&format!("assert {}1", "-".repeat(100_000)), 1).is_err());
        assert!(Code::read(&format!("assert {}1", "not ".repeat(100_000)), 1).is_err());
    }

    #[test]
    fn what_is_long_is_not_deep() {
        for operator in ["+", "*", "|", " or ", " and ", " <= "] {
            assert_eq!(
                run(&format!("assert {}1", format!("1{operator}").repeat(100_000))),
                Ok(String::new())
            );
        }
    }
}
