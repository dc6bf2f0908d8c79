//! Parses the output of callgrind: how often each function is called, and how many instructions it
//! executes itself, without those of the functions that it calls.

use std::collections::BTreeMap;

/// The instructions and calls of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share {
    pub(crate) instructions: f64,
    pub(crate) calls: f64,
}

/// The instructions and calls of all functions, by name.
pub(crate) type Profile = BTreeMap<String, Share>;

/// Parses callgrind's format, version 1, in which each line has the cost of one event type at a
/// source line. A name is written in full only once, together with a number. Later lines contain
/// only the number.
pub(crate) fn parse(text: &str) -> Profile {
    let mut names = BTreeMap::new();
    let mut profile = Profile::new();
    let (mut function, mut called) = (String::new(), String::new());
    // True after a line `calls=`. The next line then has the cost of the called function, including
    // the functions that it calls. It is skipped, because the called functions have lines of their
    // own.
    let mut is_inclusive = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = resolve(&mut names, name);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            called = resolve(&mut names, name);
        } else if let Some(words) = line.strip_prefix("calls=") {
            profile.entry(called.clone()).or_default().calls += first_number(words);
            is_inclusive = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let own = line.split(' ').nth(1).map_or(0.0, first_number);
            if !std::mem::take(&mut is_inclusive) {
                profile.entry(function.clone()).or_default().instructions += own;
            }
        }
    }
    profile
}

fn resolve(names: &mut BTreeMap<String, String>, name: &str) -> String {
    let Some((number, name)) = name.split_once(')') else { return name.to_owned() };
    if let Some(name) = name.strip_prefix(' ') {
        names.insert(number.to_owned(), name.to_owned());
    }
    names.get(number).cloned().unwrap_or_default()
}

fn first_number(words: &str) -> f64 {
    words.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Returns the profile of one unit of work: the difference between the profiles of two runs,
/// divided by `units`, the difference between their amounts of work. The cost of starting the
/// program is in both profiles, and cancels out.
pub(crate) fn a_unit(less: &Profile, more: &Profile, units: f64) -> Profile {
    let none = Share::default();
    let share = |name: &String, more: &Share| {
        let less = less.get(name).unwrap_or(&none);
        let instructions = (more.instructions - less.instructions) / units;
        Share { instructions, calls: (more.calls - less.calls) / units }
    };
    more.iter().map(|(name, more)| (name.clone(), share(name, more))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
events: Ir

fl=(1) a.rs
fn=(1) outer
10 5
fi=(2) inlined.rs
+3 2
fe=(1)
cfn=(2) inner
calls=3 20
11 300
fn=(2)
20 300
fn=(1)
* 1
";

    #[test]
    fn instructions_of_a_call_count_for_the_callee() {
        let profile = parse(TEXT);
        assert_eq!(profile["outer"], Share { instructions: 8.0, calls: 0.0 });
        assert_eq!(profile["inner"], Share { instructions: 300.0, calls: 3.0 });
    }

    #[test]
    fn a_unit_is_the_difference_of_two_runs() {
        let less = parse(TEXT);
        let more = parse(&TEXT.replace("20 300", "20 700").replace("calls=3", "calls=7"));
        let unit = a_unit(&less, &more, 4.0);
        assert_eq!(unit["inner"], Share { instructions: 100.0, calls: 1.0 });
        assert_eq!(unit["outer"], Share::default());
    }
}
