//! Shell lines: those that set a sysctl are understood, all others are refused. No shell ever runs.

use super::SyntaxError;
use std::path::Path;

/// The longest shell script that is read for its sysctls.
const LONGEST: u64 = 64 << 10;

/// A setting of the host that a script asks for, in the words of `sysctl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The line of the script.
    pub line: u32,
    /// `net.ipv4.tcp_sack`.
    pub name: String,
    /// `1`.
    pub value: String,
    /// It stands in a list of settings for many scripts, most of which need only some of them: a host
    /// that does not have it says so and goes on.
    pub from_list: bool,
}

/// Reads what stands between back-quotes. `folder` is where scripts that it names are looked for.
pub(super) fn settings(
    text: &str,
    line: u32,
    folder: Option<&Path>,
) -> Result<Vec<Setting>, SyntaxError> {
    let mut settings = Vec::new();
    let joined = text.replace("\\\n", " ");
    for command in joined.split(['\n', ';']).flat_map(|line| line.split("&&")) {
        read_command(command.trim(), line, folder, &mut settings)?;
    }
    Ok(settings)
}

fn read_command(
    command: &str,
    line: u32,
    folder: Option<&Path>,
    settings: &mut Vec<Setting>,
) -> Result<(), SyntaxError> {
    let error = |what: String| SyntaxError { line, what };
    if command.starts_with('#') {
        return Ok(());
    }
    let words = words(command).map_err(|what| error(format!("`{command}`: {what}")))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        [] | ["true" | ":"] => {}
        ["sysctl", rest @ ..] => read_sysctl(rest, line, settings).map_err(error)?,
        ["echo", value, ">", path] | ["echo", value, path]
            if path.trim_start_matches('>').starts_with("/proc/sys/") =>
        {
            let name =
                path.trim_start_matches('>').trim_start_matches("/proc/sys/").replace('/', ".");
            settings.push(Setting { line, name, value: (*value).to_owned(), from_list: false });
        }
        // Every run begins with a host that remembers no path, on a link without a queue.
        ["ip", "tcp_metrics", "flush", ..]
        | ["tc", "qdisc", "add" | "replace", "dev", _, "root", "pfifo" | "pfifo_fast"] => {}
        [script] if script.ends_with(".sh") => read_script(script, line, folder, settings)?,
        _ => {
            return Err(error(format!(
                "`{command}` is not run: of shell lines only `sysctl NAME=VALUE` is understood"
            )));
        }
    }
    Ok(())
}

fn read_sysctl(words: &[&str], line: u32, settings: &mut Vec<Setting>) -> Result<(), String> {
    let mut found = 0;
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                let name = name.replace('/', ".");
                settings.push(Setting {
                    line,
                    name,
                    value: value.trim().to_owned(),
                    from_list: false,
                });
                found += 1;
            }
            _ if word.starts_with('-') => {}
            _ => return Err(format!("sysctl: `{word}` sets nothing: write NAME=VALUE")),
        }
    }
    if found == 0 {
        Err("sysctl sets nothing: write `sysctl NAME=VALUE`".to_owned())
    } else {
        Ok(())
    }
}

/// A shell script beside the packet script, such as the `defaults.sh` of a suite: it may do what a line
/// may do.
fn read_script(
    script: &str,
    line: u32,
    folder: Option<&Path>,
    found: &mut Vec<Setting>,
) -> Result<(), SyntaxError> {
    let error = |what: String| SyntaxError { line, what: format!("`{script}`: {what}") };
    let Some(folder) = folder else {
        return Err(error(
            "this script does not lie in a folder where another could be looked for".to_owned(),
        ));
    };
    let path = folder.join(script);
    let length =
        path.metadata().map_err(|reason| error(format!("cannot be read ({reason})")))?.len();
    if length > LONGEST {
        return Err(error(format!("has {length} bytes, more than a list of settings")));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|reason| error(format!("cannot be read ({reason})")))?;
    // No folder: a script that is read for its settings does not name others.
    let read = settings(&text, line, None).map_err(|inner| error(inner.what))?;
    found.extend(read.into_iter().map(|setting| Setting { from_list: true, ..setting }));
    Ok(())
}

/// The words of a command, with what is quoted in one word, sums carried out, and the redirection of
/// output left out.
fn words(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command;
    let mut quote = None;
    while let Some(next) = rest.chars().next() {
        if quote != Some('\'') && rest.starts_with("$((") {
            let end = rest.find("))").ok_or("`$((` has no `))`")?;
            let product = product(&rest[3..end])
                .ok_or("only products of numbers are carried out in $((…))")?;
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
            '`' | '$' | '|' | '&' | '<' | '(' if quote.is_none() => {
                if next == '&' && (rest.starts_with('1') || rest.starts_with('>')) {
                    word.get_or_insert_default().push(next);
                    continue;
                }
                return Err(format!("`{next}` is beyond what is understood"));
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

/// `> /dev/null 2>&1`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, SyntaxError> {
        let settings = settings(text, 7, None)?;
        Ok(settings.into_iter().map(|setting| (setting.name, setting.value)).collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn sysctls_are_understood_however_they_are_written() {
        let text = "sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_ecn=1 > /dev/null 2>&1\n\
                    sysctl -w net.ipv4.tcp_rmem=\"4096 $((256*1024)) 4194304\"; echo 0 > /proc/sys/net/ipv4/tcp_timestamps";
        assert_eq!(
            read(text),
            Ok(vec![
                pair("net.ipv4.tcp_sack", "0"),
                pair("net.ipv4.tcp_ecn", "1"),
                pair("net.ipv4.tcp_rmem", "4096 262144 4194304"),
                pair("net.ipv4.tcp_timestamps", "0"),
            ])
        );
    }

    #[test]
    fn a_list_of_settings_beside_the_script_is_read() {
        let folder = std::env::temp_dir().join(format!("linerate-list-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let list = "#!/bin/bash\n# All.\nsysctl -q net.ipv4.tcp_sack=1\nip tcp_metrics flush all > /dev/null 2>&1\n";
        std::fs::write(folder.join("defaults.sh"), list).unwrap();
        let read = settings("./defaults.sh", 3, Some(&folder)).unwrap();
        assert!(matches!(&read[..], [Setting { line: 3, from_list: true, .. }]), "{read:?}");
        std::fs::write(folder.join("defaults.sh"), "reboot").unwrap();
        assert!(settings("./defaults.sh", 3, Some(&folder)).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn everything_else_is_refused_with_its_line() {
        for text in [
            "rm -rf /",
            "sysctl -a",
            "iptables -A INPUT",
            "sysctl net.ipv4.tcp_sack=$(id)",
            "../defaults.sh",
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, 7, "{error}");
        }
    }
}
