//! Assertions about a connection, in a subset of Python: `%{ assert tcpi_snd_cwnd == 10,
//! tcpi_snd_cwnd }%`. The subset has numbers, strings, comparisons and arithmetic, and nothing with
//! side effects.

mod expression;
mod names;
mod operator;
mod text;

use super::SyntaxError;
use super::cursor::Cursor;
use expression::Expression;
use std::fmt::Write;
use thiserror::Error;

/// Assertions and other statements: the code between `%{` and `}%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
enum Statement {
    Assert { line: u32, text: String, condition: Expression, message: Option<Expression> },
    Print(Vec<Expression>),
}

/// The reason why an assertion failed or could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// An assertion that is false.
    #[error("{text} is false{values}")]
    Assertion {
        /// The line of the assertion.
        line: u32,
        /// Text of the assertion.
        text: String,
        /// The values of the fields in the assertion, and the message of the assertion if it has
        /// one.
        values: String,
    },
    /// A field that the host does not have.
    #[error("tcpi_{0} is not available")]
    Unknown(String),
    /// An expression without a value, such as a division by zero or a text in place of a number.
    #[error("this has no value: {0}")]
    Undefined(&'static str),
}

/// A function that returns a field of `struct tcp_info` by its name, which is given without the
/// prefix `tcpi_`.
type Fields<'a> = &'a dyn Fn(&str) -> Option<u64>;

impl Code {
    /// Parses code. `line` is the number of its first line.
    pub(super) fn read(text: &str, line: u32) -> Result<Self, SyntaxError> {
        let mut statements = Vec::new();
        let text = text::without_comments(text);
        let mut cursor = Cursor::without_comments(&text, line);
        while !cursor.is_at_end() {
            statements.push(Statement::read(&mut cursor)?);
            while cursor.take(";") {}
        }
        Ok(Self { statements })
    }

    /// Executes the statements, and returns the output of `print`. `field` returns the fields of
    /// `struct tcp_info`.
    ///
    /// # Errors
    /// [`CodeError`]: an assertion is false or cannot be evaluated.
    pub fn run(&self, field: Fields<'_>) -> Result<String, CodeError> {
        let mut printed = String::new();
        for statement in &self.statements {
            match statement {
                Statement::Print(list) => {
                    let words: Result<Vec<_>, _> =
                        list.iter().map(|expression| expression.to_text(field)).collect();
                    printed += &format!("{}\n", words?.join(" "));
                }
                Statement::Assert { line, text, condition, message } => {
                    if condition.value(field)? == 0.0 {
                        let values = condition.fields(field) + &said(message.as_ref(), field);
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

/// Returns the message of an assertion as `: message`. Returns an empty text if the assertion has
/// no message or it cannot be evaluated. The failure of the assertion is reported in any case.
fn said(message: Option<&Expression>, field: Fields<'_>) -> String {
    let mut said = String::new();
    if let Some(message) = message {
        let _ = match message.to_text(field) {
            Ok(text) => write!(said, ": {text}"),
            Err(error) => write!(said, ": (its message cannot be shown: {error})"),
        };
    }
    said
}

impl Statement {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let line = cursor.line();
        let start = cursor.rest();
        match cursor.word("assert or print")? {
            "assert" => {
                let condition = Expression::read(cursor)?;
                let text = &start[..start.len() - cursor.rest().len()];
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let message = if cursor.take(",") { Some(Expression::read(cursor)?) } else { None };
                Ok(Self::Assert { line, text, condition, message })
            }
            "print" => {
                cursor.want("(")?;
                Ok(Self::Print(cursor.list(")", Expression::read)?))
            }
            other => Err(cursor.error(format!(
                "`{other}`: only assert and print are supported, with numbers and tcpi_ names"
            ))),
        }
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
    fn true_assertions_pass() {
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
    fn a_false_assertion_reports_its_values() {
        assert_eq!(
            run("assert tcpi_snd_cwnd == 7, 'the window'").unwrap_err(),
            "assert tcpi_snd_cwnd == 7 is false (tcpi_snd_cwnd = 10): the window"
        );
        assert_eq!(run("assert tcpi_nothing == 7").unwrap_err(), "tcpi_nothing is not available");
        assert_eq!(run("assert 1 / 0").unwrap_err(), "this has no value: a division by zero");
        assert_eq!(run("print('cwnd', tcpi_snd_cwnd)"), Ok("cwnd 10\n".to_owned()));
    }

    #[test]
    fn an_error_in_a_message_does_not_hide_the_failure() {
        for (message, reason) in [
            ("'cwnd %d' % tcpi_snd_cwnd", ": cwnd 10"),
            ("'%d of %s' % (tcpi_snd_cwnd, 'it'\n 'self')", ": 10 of itself"),
            ("(tcpi_snd_cwnd, 'it')", ": 10 it"),
            ("'%d %d' % tcpi_snd_cwnd", "more conversions than values"),
            ("'%d' % tcpi_nothing", "tcpi_nothing is not available"),
        ] {
            let said = run(&format!("assert tcpi_snd_cwnd \\\n == 7, {message}")).unwrap_err();
            assert!(said.starts_with("assert tcpi_snd_cwnd == 7 is false"), "{said}");
            assert!(said.contains(reason), "{said}");
        }
        assert_eq!(run("print('%x' % 255, 'a#b') # c"), Ok("ff a#b\n".to_owned()));
    }

    #[test]
    fn other_parts_of_python_are_refused() {
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
    fn long_code_does_not_need_a_deep_stack() {
        for operator in ["+", "*", "|", " or ", " and ", " <= "] {
            assert_eq!(
                run(&format!("assert {}1", format!("1{operator}").repeat(100_000))),
                Ok(String::new())
            );
        }
    }
}
