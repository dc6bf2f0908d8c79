//! Scenarios: TOML files that describe hosts, media and programs. A scenario names other files,
//! such as those of machines and NICs. Their entries are merged with its own.

mod blueprint;
mod build;
mod family;
mod hosts;
mod media;
mod options;
mod programs;
mod relays;
mod spread;
mod topology;

pub use blueprint::{Blueprint, TransferFacts};
pub use family::Family;
pub use options::TransferOptions;

use crate::catalog::{
    BuiltinFiles, MACHINES, MEDIA, NICS, QUEUES, SCENARIOS, TCPS, heading_before,
};
use crate::parameter::{ParameterError, Settings};

/// Maximum length of a chain of files. A file can be based on another file, which it names by
/// `base`, and that file on a third one.
const DEEPEST: usize = 4;

/// A scenario whose parameters can be changed before it is run.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    question: String,
    settings: Settings,
}

/// A function that returns the contents of a file, or an error message. It is called for each file
/// that a scenario names and that is not built in.
pub type Reader<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

impl Scenario {
    /// Returns the names of the built-in scenarios.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SCENARIOS.names()
    }

    /// Returns the heading to print before the built-in scenario `name`, if it is the first one of
    /// a group.
    #[must_use]
    pub fn heading_before(name: &str) -> Option<&'static str> {
        heading_before(name)
    }

    /// Returns the built-in scenario with this name.
    ///
    /// # Errors
    /// If there is no such scenario.
    pub fn named(name: &str) -> Result<Self, ParameterError> {
        Self::parse(name, SCENARIOS.text(name)?, &|file| Err(format!("{file} is not there")))
    }

    /// Returns the text of the built-in scenario with this name.
    ///
    /// # Errors
    /// If there is no such scenario.
    pub fn text(name: &str) -> Result<&'static str, ParameterError> {
        SCENARIOS.text(name)
    }

    /// Parses a scenario. If the scenario names a file whose name ends in `.toml`, `read` is called
    /// to get the text of that file.
    ///
    /// # Errors
    /// The first fault that was found.
    pub fn parse(name: &str, text: &str, read: &Reader<'_>) -> Result<Self, ParameterError> {
        let mut scenario = Self {
            name: name.to_owned(),
            question: question(text),
            settings: Settings::parse(name, text, "")?,
        };
        for (key, files) in scenario.references() {
            scenario.unfold(&key, files, read)?;
        }
        for change in scenario.settings.take_changes() {
            scenario.set(&change)?;
        }
        Ok(scenario)
    }

    /// Returns the keys whose value is the name of a file, each with the built-in files of its
    /// kind.
    fn references(&self) -> Vec<(String, &'static BuiltinFiles)> {
        let mut references = vec![("medium".to_owned(), &MEDIA)];
        let media = self.settings.names("media").into_iter();
        references.extend(media.map(|name| (format!("media.{name}.medium"), &MEDIA)));
        for place in ["routers", "bridges"] {
            for relay in self.settings.names(place) {
                references.push((format!("{place}.{relay}.machine"), &MACHINES));
                for nic in self.settings.names(&format!("{place}.{relay}.nics")) {
                    let parts = [("nic", &NICS), ("queue", &QUEUES)];
                    let key = |part| format!("{place}.{relay}.nics.{nic}.{part}");
                    references.extend(parts.map(|(part, files)| (key(part), files)));
                }
            }
        }
        for host in self.settings.names("hosts") {
            let parts = [("machine", &MACHINES), ("nic", &NICS), ("tcp", &TCPS)];
            references.extend(parts.map(|(part, files)| (format!("hosts.{host}.{part}"), files)));
        }
        references
    }

    /// Merges the entries of the file that `key` names into the scenario. If that file is based on
    /// another file, the entries of that one are merged as well, and so on along the chain.
    fn unfold(
        &mut self,
        key: &str,
        files: &BuiltinFiles,
        read: &Reader<'_>,
    ) -> Result<(), ParameterError> {
        let mut name = self.settings.word(key).map(str::to_owned);
        for _ in 0..DEEPEST {
            let Some(file) = name else { return Ok(()) };
            let text = if file.ends_with(".toml") {
                let unreadable = |what| ParameterError::Unreadable {
                    key: key.to_owned(),
                    file: file.clone(),
                    what,
                };
                read(&file).map_err(unreadable)?
            } else {
                files.text(&file)?.to_owned()
            };
            let mut below = Settings::parse(&file, &text, key)?;
            name = below.take_word(&format!("{key}.base"));
            self.settings.add_below(below);
        }
        Err(ParameterError::Topology(format!(
            "{key} is based on files that are based on each other: name one"
        )))
    }

    /// Returns the name of the scenario.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the question that the scenario answers: the first comment of its file.
    #[must_use]
    pub fn question(&self) -> &str {
        &self.question
    }

    /// Returns all entries of the scenario and of the files that it names.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes a parameter (`sender.nic.transmit.start=700`). A parameter of a file is changed for
    /// all machines that use the file (`sun-3-60.cost.wakeup=200`). A change can also select
    /// another built-in file (`sender.nic=lance`), or the IP version (`family=ipv6`).
    ///
    /// # Errors
    /// Fails if there is no such parameter, or the value is out of its range.
    pub fn set(&mut self, change: &str) -> Result<(), ParameterError> {
        let (key, name) = change.split_once('=').unwrap_or((change, ""));
        let (key, name) = (key.trim(), name.trim());
        if key == family::KEY {
            // `Settings::set` changes only entries that exist. A scenario for IPv4 may have no
            // entry for the family, so `replace_word` is used, which adds a missing entry.
            self.settings.replace_word(key, name);
            return Family::read(&self.settings).map(drop);
        }
        let named = self
            .references()
            .into_iter()
            .find(|(known, _)| known == key || Settings::short_key(known) == key);
        let Some((key, files)) = named else { return self.settings.set(&self.name, change) };
        files.text(name)?;
        self.settings.replace_word(&key, name);
        self.unfold(&key, files, &|file| Err(format!("{file} is not in the catalogue")))
    }

    /// Reads and checks all parameters. The returned blueprint can be run many times.
    ///
    /// # Errors
    /// If parts of the scenario contradict each other.
    pub fn blueprint(&self) -> Result<Blueprint, ParameterError> {
        Blueprint::new(&self.settings)
    }
}

/// Returns the first comment of a file as one line.
fn question(text: &str) -> String {
    let comment = text.lines().take_while(|line| line.starts_with('#'));
    let lines: Vec<&str> = comment.map(|line| line.trim_start_matches('#').trim()).collect();
    lines.join(" ")
}
