//! Splits a shell line into words.

/// Returns the words of a command. Quoted text is one word, arithmetic products are evaluated, and
/// comments and redirections are removed.
pub(super) fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command;
    let mut quote = None;
    while let Some(next) = rest.chars().next() {
        if quote != Some('\'') && rest.starts_with("$((") {
            let end = rest.find("))").ok_or("`$((` has no `))`")?;
            let product =
                product(&rest[3..end]).ok_or("only products of numbers are supported in $((…))")?;
            word.get_or_insert_default().push_str(&product.to_string());
            rest = &rest[end + 2..];
            continue;
        }
        rest = &rest[next.len_utf8()..];
        match next {
            '"' | '\'' if quote == Some(next) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && next.is_whitespace() => words.extend(word.take()),
            '#' if quote.is_none() && word.is_none() => break,
            '`' | '$' | '|' | '&' | '<' | '(' if quote.is_none() => {
                if next == '&' && (rest.starts_with('1') || rest.starts_with('>')) {
                    word.get_or_insert_default().push(next);
                    continue;
                }
                return Err(format!("`{next}` is not supported"));
            }
            _ => word.get_or_insert_default().push(next),
        }
    }
    if quote.is_some() {
        return Err("a quotation has no end".to_owned());
    }
    words.extend(word);
    drop_redirections(&mut words);
    Ok(words)
}

/// Removes redirections of the output, such as `> /dev/null 2>&1`.
fn drop_redirections(words: &mut Vec<String>) {
    words.retain(|word| word != "2>&1" && word != ">/dev/null" && word != "2>/dev/null");
    while let Some(at) = words.iter().position(|word| word == "/dev/null") {
        words.remove(at);
        if at > 0 && (words[at - 1] == ">" || words[at - 1] == "2>") {
            words.remove(at - 1);
        }
    }
}

fn product(text: &str) -> Option<u64> {
    text.split('*')
        .try_fold(1_u64, |product, factor| product.checked_mul(factor.trim().parse().ok()?))
}
