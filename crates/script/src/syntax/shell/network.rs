//! Parses the shell commands `tc`, `ethtool`, `ss`, `nstat` and `ip`.

/// The effect of a network command on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect<'a> {
    /// The command restores the initial state, so nothing is to be done.
    None,
    /// The command cannot affect a script, for this reason.
    Skip(&'static str),
    /// The command sets these properties of the default route, as name and value.
    Route(Vec<(&'a str, &'a str)>),
}

/// Queue disciplines that a script may set. They neither delay nor drop packets while their queue
/// is empty, so they do not affect the script.
const QUEUES: [&str; 8] =
    ["pfifo", "pfifo_fast", "fq", "fq_codel", "codel", "mq", "noqueue", "bfifo"];
/// The supported properties of the default route, named as in `ip route`.
const ROUTE: [&str; 6] = ["mtu", "window", "advmss", "initcwnd", "initrwnd", "congctl"];

const NO_QUEUE: &str = "skipped: the link has no queue";
const NO_OFFLOADS: &str = "skipped: the link has no offloads";
const ONLY_SHOWS: &str = "skipped: it only shows something";
const IS_UP: &str = "skipped: the link is up";

/// Parses a command. Returns `None` if it is not supported.
pub(super) fn read<'a>(words: &[&'a str]) -> Option<Effect<'a>> {
    match words {
        ["ip", "tcp_metrics", "flush", ..] => Some(Effect::None),
        ["ip", "link", "set", .., "up"] => Some(Effect::Skip(IS_UP)),
        ["ip", "route", "add" | "change" | "replace", rest @ ..] => route(rest).map(Effect::Route),
        ["ip", .., "show" | "list"] => Some(Effect::Skip(ONLY_SHOWS)),
        ["tc", "qdisc", "del", ..] => Some(Effect::Skip(NO_QUEUE)),
        ["tc", "qdisc", "add" | "change" | "replace", "dev", _, "root", rest @ ..] => queue(rest),
        ["tc", .., "show"] | ["tc", .., "show", "dev", _] => Some(Effect::Skip(ONLY_SHOWS)),
        ["ethtool", "-K" | "--offload" | "--features" | "-C" | "-G", ..] => {
            Some(Effect::Skip(NO_OFFLOADS))
        }
        ["ethtool", "-k" | "-c" | "-g" | "-i" | "-S", _] => Some(Effect::Skip(ONLY_SHOWS)),
        ["ss", rest @ ..] => {
            let kills = rest
                .iter()
                .any(|word| *word == "--kill" || word.starts_with('-') && word.contains('K'));
            (!kills).then_some(Effect::Skip(ONLY_SHOWS))
        }
        ["nstat", ..] => Some(Effect::Skip(ONLY_SHOWS)),
        _ => None,
    }
}

/// Parses the arguments `[handle 1:] fq limit 1000` of `tc qdisc`. Returns `None` for an unknown
/// discipline, and for a discipline with a rate, which would delay packets.
fn queue<'a>(words: &[&str]) -> Option<Effect<'a>> {
    let words = match words {
        ["handle", _, rest @ ..] => rest,
        words => words,
    };
    let harmless = words.first().is_some_and(|kind| QUEUES.contains(kind))
        && !words.iter().any(|word| word.contains("rate"));
    harmless.then_some(Effect::Skip(NO_QUEUE))
}

/// Parses the arguments `default dev tun0 mtu lock 600` of `ip route`, and returns its properties.
/// Returns `None` for any other route than the default route, and for an unknown property.
fn route<'a>(words: &[&'a str]) -> Option<Vec<(&'a str, &'a str)>> {
    let mut properties = Vec::new();
    let mut words = words.iter().copied().filter(|word| *word != "lock");
    words.next().filter(|destination| matches!(*destination, "default" | "0.0.0.0/0"))?;
    while let Some(key) = words.next() {
        let value = words.next()?;
        match key {
            "dev" | "via" | "src" | "proto" | "scope" | "metric" => {}
            key if ROUTE.contains(&key) => properties.push((key, value)),
            _ => return None,
        }
    }
    Some(properties)
}
