//! A scenario: who is where and does what, as a file says it, with the files that it names unfolded.

mod blueprint;
mod build;
mod media;
mod programs;
mod relays;
mod spread;
mod topology;

pub use blueprint::{Blueprint, TransferFacts, TransferOptions};

use crate::catalog::{CARDS, MACHINES, MEDIA, QUEUES, SCENARIOS, Shelf, TCPS};
use crate::parameter::{ParameterError, Settings};

/// A machine's file may be based on another one's, and that on another one's.
const DEEPEST: usize = 4;

/// A scenario, which can be changed.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    question: String,
    settings: Settings,
}

/// Whoever can read the files that a scenario names beside those that come with the simulator.
pub type Reader<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

impl Scenario {
    /// The names of the scenarios that come with the simulator.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SCENARIOS.names()
    }

    /// One of them.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn named(name: &str) -> Result<Self, ParameterError> {
        Self::parse(name, SCENARIOS.text(name)?, &|file| Err(format!("{file} is not there")))
    }

    /// The text of one of them.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn text(name: &str) -> Result<&'static str, ParameterError> {
        SCENARIOS.text(name)
    }

    /// A scenario as somebody has written it; `read` reads files whose names end in `.toml` for it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(name: &str, text: &str, read: &Reader<'_>) -> Result<Self, ParameterError> {
        let mut scenario = Self {
            name: name.to_owned(),
            question: question(text),
            settings: Settings::parse(name, text, "")?,
        };
        for (key, shelf) in scenario.references() {
            scenario.unfold(&key, shelf, read)?;
        }
        for change in scenario.settings.take_changes() {
            scenario.set(&change)?;
        }
        Ok(scenario)
    }

    /// The entries that name files, and where these lie.
    fn references(&self) -> Vec<(String, &'static Shelf)> {
        let mut references = vec![("medium".to_owned(), &MEDIA)];
        let media = self.settings.names("media").into_iter();
        references.extend(media.map(|name| (format!("media.{name}.medium"), &MEDIA)));
        for place in ["routers", "bridges"] {
            for relay in self.settings.names(place) {
                references.push((format!("{place}.{relay}.machine"), &MACHINES));
                for card in self.settings.names(&format!("{place}.{relay}.cards")) {
                    let parts = [("nic", &CARDS), ("queue", &QUEUES)];
                    let key = |part| format!("{place}.{relay}.cards.{card}.{part}");
                    references.extend(parts.map(|(part, shelf)| (key(part), shelf)));
                }
            }
        }
        for host in self.settings.names("hosts") {
            let parts = [("machine", &MACHINES), ("nic", &CARDS), ("tcp", &TCPS)];
            references.extend(parts.map(|(part, shelf)| (format!("hosts.{host}.{part}"), shelf)));
        }
        references
    }

    /// Adds what the file says that `key` names.
    fn unfold(
        &mut self,
        key: &str,
        shelf: &Shelf,
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
                shelf.text(&file)?.to_owned()
            };
            let mut below = Settings::parse(&file, &text, key)?;
            name = below.take_word(&format!("{key}.base"));
            self.settings.add_below(below);
        }
        Err(ParameterError::Topology(format!(
            "{key} is based on files that are based on each other: name one"
        )))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it asks: the first comment of its file.
    #[must_use]
    pub fn question(&self) -> &str {
        &self.question
    }

    /// All that decides it.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes a parameter: `sender.nic.transmit.start=700`, or `sun-3-60.cost.wakeup=200` for every such machine; or
    /// takes another file of the catalogue: `sender.nic=lance`.
    ///
    /// # Errors
    /// If there is no such parameter, or the value is out of its range.
    pub fn set(&mut self, change: &str) -> Result<(), ParameterError> {
        let (key, name) = change.split_once('=').unwrap_or((change, ""));
        let (key, name) = (key.trim(), name.trim());
        let named = self
            .references()
            .into_iter()
            .find(|(known, _)| known == key || Settings::short_key(known) == key);
        let Some((key, shelf)) = named else { return self.settings.set(&self.name, change) };
        shelf.text(name)?;
        self.settings.replace_word(&key, name);
        self.unfold(&key, shelf, &|file| Err(format!("{file} is not in the catalogue")))
    }

    /// The scenario as something that can be run, many times.
    ///
    /// # Errors
    /// If its parts do not fit together.
    pub fn blueprint(&self) -> Result<Blueprint, ParameterError> {
        Blueprint::new(&self.settings)
    }
}

/// The first comment of a file, as one line.
fn question(text: &str) -> String {
    let comment = text.lines().take_while(|line| line.starts_with('#'));
    let lines: Vec<&str> = comment.map(|line| line.trim_start_matches('#').trim()).collect();
    lines.join(" ")
}
