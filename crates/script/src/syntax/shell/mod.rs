//! Shell lines in scripts, which are parsed but never run by a shell. Commands that set sysctls or
//! the route are applied to the host. Commands that cannot affect a script are skipped with a note.
//! All others are refused.

mod network;
mod words;

use super::SyntaxError;
use std::path::Path;
use words::words;

/// Maximum length of a shell script that is read for its settings, in bytes.
const LONGEST: u64 = 64 << 10;

/// A setting of the host, named as in `sysctl`. Properties of the default route have names as in
/// `ip route` with the prefix `route.`: `route.mtu`, `route.initcwnd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Number of the script's line with the shell command.
    pub line: u32,
    /// Name, such as `net.ipv4.tcp_sack`.
    pub name: String,
    /// Value, such as `1`.
    pub value: String,
    /// Whether the setting comes from a file that many scripts share. If a host does not support
    /// such a setting, the script still runs, and the report has a note about it.
    pub from_list: bool,
}

/// The effect of a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellStep {
    /// Changes a setting.
    Set(Setting),
    /// Does nothing, because the command cannot affect a script.
    Skip {
        /// Number of the script's line with the shell command.
        line: u32,
        /// The command, and the reason why it is skipped.
        note: String,
    },
}

/// Parses the text of a shell line. `folder` contains the shell scripts that the line may name.
pub(super) fn shell(
    text: &str,
    line: u32,
    folder: Option<&Path>,
) -> Result<Vec<ShellStep>, SyntaxError> {
    let mut steps = Vec::new();
    let joined = text.replace("\\\n", " ");
    for command in joined.lines().flat_map(commands) {
        read_command(command, line, folder, &mut steps)?;
    }
    Ok(steps)
}

/// Returns the commands of a line, which `;` or `&&` separates. A final `|| true` is removed from a
/// command: it only hides failures, and no command fails here.
fn commands(line: &str) -> impl Iterator<Item = &str> {
    // Comments are removed first, because a comment may contain `;` or `&&`, which separate
    // commands.
    let comment = if line.trim_start().starts_with('#') { 0 } else { line.len() };
    let line = &line[..line.find(" #").unwrap_or(comment)];
    line.split(';').flat_map(|part| part.split("&&")).map(|command| {
        let (first, fallback) = command.rsplit_once("||").unwrap_or((command, ""));
        if matches!(fallback.trim(), "true" | ":") { first.trim() } else { command.trim() }
    })
}

fn read_command(
    command: &str,
    line: u32,
    folder: Option<&Path>,
    steps: &mut Vec<ShellStep>,
) -> Result<(), SyntaxError> {
    let error = |what: String| SyntaxError { line, what };
    // packetdrill runs on the real machine, and this shell script then restores the sysctls. Here,
    // each script has a host of its own, so there is nothing to restore.
    if command.starts_with("/tmp/sysctl_restore_") {
        return Ok(());
    }
    let words = words(command).map_err(|what| error(format!("`{command}`: {what}")))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match &words[..] {
        [] | ["true" | ":"] => {}
        ["sysctl", rest @ ..] => read_sysctl(rest, line, steps).map_err(error)?,
        [helper, rest @ ..] if helper.ends_with("set_sysctls.py") => {
            read_sysctl(rest, line, steps).map_err(error)?;
        }
        ["echo", value, ">", path] | ["echo", value, path]
            if path.trim_start_matches('>').starts_with("/proc/sys/") =>
        {
            steps.push(set(line, path.trim_start_matches('>'), value));
        }
        [script] if script.ends_with(".sh") => read_script(script, line, folder, steps)?,
        _ => match network::read(&words) {
            Some(network::Effect::None) => {}
            Some(network::Effect::Skip(why)) => {
                steps.push(ShellStep::Skip { line, note: format!("`{command}`: {why}") });
            }
            Some(network::Effect::Route(list)) => {
                let name = |name| format!("route.{name}");
                steps.extend(list.into_iter().map(|(key, value)| set(line, &name(key), value)));
            }
            None => {
                return Err(error(format!(
                    "`{command}` is not run: of shell lines `sysctl NAME=VALUE`, `ip route` and \
                     those about offloads and queues are understood"
                )));
            }
        },
    }
    Ok(())
}

/// Creates a setting from the name of a sysctl, or from its path below /proc/sys.
fn set(line: u32, name: &str, value: &str) -> ShellStep {
    let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
    ShellStep::Set(Setting { line, name, value: value.trim().to_owned(), from_list: false })
}

fn read_sysctl(words: &[&str], line: u32, steps: &mut Vec<ShellStep>) -> Result<(), String> {
    let mut found = 0;
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => {
                steps.push(set(line, name, value));
                found += 1;
            }
            _ if word.starts_with('-') => {}
            _ => return Err(format!("sysctl: `{word}` sets nothing: write NAME=VALUE")),
        }
    }
    if found == 0 {
        Err("sysctl needs a setting: write `sysctl NAME=VALUE`".to_owned())
    } else {
        Ok(())
    }
}

/// Reads a shell script in the folder of the packet script, such as `defaults.sh`. The commands of
/// a shell line, and no others, are permitted in it.
fn read_script(
    script: &str,
    line: u32,
    folder: Option<&Path>,
    found: &mut Vec<ShellStep>,
) -> Result<(), SyntaxError> {
    let error = |what: String| SyntaxError { line, what: format!("`{script}`: {what}") };
    let Some(folder) = folder else {
        return Err(error(
            "this script is not in a folder, so it cannot name other scripts".to_owned(),
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
    // `None` instead of a folder forbids this shell script to run other shell scripts.
    let read = shell(&text, line, None).map_err(|inner| error(inner.what))?;
    found.extend(read.into_iter().map(|step| match step {
        ShellStep::Set(setting) => ShellStep::Set(Setting { from_list: true, ..setting }),
        skip @ ShellStep::Skip { .. } => skip,
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, SyntaxError> {
        let pair = |step| match step {
            ShellStep::Set(setting) => (setting.name, setting.value),
            ShellStep::Skip { note, .. } => ("skipped".to_owned(), note),
        };
        Ok(shell(text, 7, None)?.into_iter().map(pair).collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn sysctls_are_parsed_in_all_notations() {
        let text = "sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_ecn=1 > /dev/null 2>&1\n\
                    sysctl -w net.ipv4.tcp_rmem=\"4096 $((256*1024)) 4194304\"; echo 0 > \
                    /proc/sys/net/ipv4/tcp_timestamps";
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
    fn a_list_of_settings_next_to_the_script_is_read() {
        let folder = std::env::temp_dir().join(format!("linerate-list-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let list = "#!/bin/bash\n# All.\nsysctl -q net.ipv4.tcp_sack=1\nip tcp_metrics flush all \
                    > /dev/null 2>&1\n";
        std::fs::write(folder.join("defaults.sh"), list).unwrap();
        let read = shell("./defaults.sh", 3, Some(&folder)).unwrap();
        assert!(
            matches!(&read[..], [ShellStep::Set(Setting { line: 3, from_list: true, .. })]),
            "{read:?}"
        );
        std::fs::write(folder.join("defaults.sh"), "reboot").unwrap();
        assert!(shell("./defaults.sh", 3, Some(&folder)).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn comments_helpers_and_routes_are_parsed() {
        let text = "sysctl -q net.ipv4.tcp_sack=0 # not; today && ever\n\
                    ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_ecn=1 net/ipv4/tcp_frto=0 || \
                    true\n\
                    ip route change default dev tun0 initcwnd 20 mtu lock 600\n\
                    /tmp/sysctl_restore_${PPID}.sh\nip tcp_metrics flush all";
        assert_eq!(
            read(text),
            Ok(vec![
                pair("net.ipv4.tcp_sack", "0"),
                pair("net.ipv4.tcp_ecn", "1"),
                pair("net.ipv4.tcp_frto", "0"),
                pair("route.initcwnd", "20"),
                pair("route.mtu", "600"),
            ])
        );
    }

    #[test]
    fn commands_without_effect_are_skipped_with_a_note() {
        for text in [
            "tc qdisc replace dev tun0 root fq limit 1000",
            "ethtool -K tun0 tso off gso off",
            "ss -tin",
            "nstat -n > /dev/null",
            "ip link set dev tun0 up",
        ] {
            let steps = read(text).unwrap();
            assert!(
                matches!(&steps[..], [(name, note)] if name == "skipped" && note.contains(text)),
                "{steps:?}"
            );
        }
    }

    #[test]
    fn other_commands_are_refused_with_their_line() {
        for text in [
            "rm -rf /",
            "sysctl -a",
            "iptables -A INPUT",
            "sysctl net.ipv4.tcp_sack=$(id)",
            "ss -tin | grep cwnd",
            "reboot || true",
            "tc qdisc add dev tun0 root netem delay 10ms",
            "ip route change default dev tun0 quickack 1",
            "ip link set dev tun0 mtu 576",
            "ss -K dst 192.0.2.1",
            "../defaults.sh",
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, 7, "{error}");
        }
    }
}
