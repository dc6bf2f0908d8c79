//! Comments in assertions, and string formatting with `%`.

use std::fmt::Write;

/// Maximum width of a formatted value, which bounds the size of a report.
const WIDEST: usize = 40;

/// Removes comments, and the `\` at the end of a line that continues on the next one. The number of
/// lines does not change, so that errors name the right line.
pub(super) fn without_comments(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    for line in text.lines() {
        let code = &line[..comment_begins(line)];
        whole.push_str(code.trim_end().strip_suffix('\\').unwrap_or(code));
        whole.push('\n');
    }
    whole
}

/// Returns the position at which a line's comment begins: the first `#` outside quotes. Without a
/// comment, this is the length of the line.
fn comment_begins(line: &str) -> usize {
    let mut quote = None;
    for (at, sign) in line.char_indices() {
        match sign {
            '#' if quote.is_none() => return at,
            '\'' | '"' if quote == Some(sign) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(sign),
            _ => {}
        }
    }
    line.len()
}

/// A value to be formatted.
#[derive(Clone, Debug)]
pub(super) enum FormatValue {
    Number(f64),
    Text(String),
}

/// Evaluates `template % values` for the conversions `d i u s r f x c` with an optional width.
///
/// # Errors
/// The reason why template and values do not match.
pub(super) fn format(template: &str, values: &[FormatValue]) -> Result<String, &'static str> {
    let mut text = String::new();
    let mut values = values.iter();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('%') {
        text.push_str(before);
        let flags = behind.len() - behind.trim_start_matches(['-', '+', ' ', '0', '#']).len();
        let (flags, behind) = behind.split_at(flags);
        let size = behind.len() - behind.trim_start_matches(|next: char| is_size(next)).len();
        let (size, behind) = behind.split_at(size);
        let kind = behind.chars().next().ok_or("a text ends within a conversion")?;
        rest = &behind[kind.len_utf8()..];
        if kind == '%' {
            text.push('%');
            continue;
        }
        let value = values.next().ok_or("a text has more conversions than values")?;
        let (width, digits) = size.split_once('.').unwrap_or((size, "6"));
        let formatted = convert(kind, value, digits.parse().unwrap_or(6).min(WIDEST))?;
        let width = width.parse().unwrap_or(0).min(WIDEST);
        let _ = if flags.contains('-') {
            write!(text, "{formatted:<width$}")
        } else {
            write!(text, "{formatted:>width$}")
        };
    }
    text.push_str(rest);
    if values.next().is_some() {
        return Err("a text has fewer conversions than values");
    }
    Ok(text)
}

const fn is_size(next: char) -> bool {
    next.is_ascii_digit() || next == '.'
}

fn convert(kind: char, value: &FormatValue, digits: usize) -> Result<String, &'static str> {
    #[allow(clippy::cast_possible_truncation, reason = "a conversion of a float saturates")]
    Ok(match (kind, value) {
        ('s' | 'r', FormatValue::Text(text)) => text.clone(),
        ('s' | 'r', FormatValue::Number(number)) => number.to_string(),
        ('d' | 'i' | 'u', FormatValue::Number(number)) => (*number as i64).to_string(),
        ('x', FormatValue::Number(number)) => format!("{:x}", *number as i64),
        ('f' | 'g' | 'e', FormatValue::Number(number)) => format!("{number:.digits$}"),
        (_, FormatValue::Text(_)) => {
            return Err("a conversion of a number has a text as its value");
        }
        _ => return Err("a conversion must be one of %d %i %u %s %r %x %f %g %e"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_work_as_in_python() {
        let values = [
            FormatValue::Number(10.0),
            FormatValue::Text("b".to_owned()),
            FormatValue::Number(2.5),
        ];
        assert_eq!(format("%d of %s: %.1f%%", &values), Ok("10 of b: 2.5%".to_owned()));
        assert_eq!(format("[%4d|%-3s|%x]", &values), Ok("[  10|b  |2]".to_owned()));
        for (template, says) in [
            ("%d", "fewer"),
            ("%d %s %d %d", "more"),
            ("%s %d %d", "conversion of a number"),
            ("%d %s %q", "must be one of"),
            ("%d %s %", "ends within"),
        ] {
            assert!(format(template, &values).unwrap_err().contains(says), "{template}");
        }
    }

    #[test]
    fn comments_end_lines_and_backslashes_join_them() {
        assert_eq!(without_comments("a '#' # b\nc \\\nd"), "a '#' \nc \nd\n");
    }
}
