//! All entries of a scenario, including those of the files that it names. Each entry is identified
//! by a path such as `hosts.sender.nic.transmit.start`.

use super::place::Lines;
use super::setting::Dimension;
use super::{Number, ParameterError, Place, Setting};
use linerate_units::{Rate, Span};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use toml::de::DeTable;

/// Tables whose names can be omitted from a key of `--set`: `sender.nic` means `hosts.sender.nic`.
const PLACES: [&str; 5] = ["hosts", "programs", "media", "routers", "bridges"];

/// Upper limit of a wire's bit rate: a bit must last at least a picosecond, the resolution of
/// simulated time.
const FASTEST: u64 = 1_000_000_000_000;
/// Lower limit of periods and timeouts, which keeps the number of events bounded.
const SHORTEST_PAUSE: Span = Span::from_picos(1_000_000);

/// The entries of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    entries: BTreeMap<String, Setting>,
    /// Positions of the entries in their files. An entry that `--set` has changed has no position.
    places: BTreeMap<String, Place>,
    /// Keys that the program has read. An entry whose key is not among them in the end is refused
    /// as unused.
    read: RefCell<BTreeSet<String>>,
}

impl Settings {
    /// Parses a file. The path of each entry begins with `prefix`.
    pub(crate) fn parse(file: &str, text: &str, prefix: &str) -> Result<Self, ParameterError> {
        let lines = Lines::new(file, text);
        let not_toml = |error: toml::de::Error| ParameterError::NotToml {
            place: lines.place(error.span().map_or(0, |span| span.start)),
            what: error.message().to_owned(),
        };
        let places = DeTable::parse(text).map_err(not_toml)?;
        let table = text.parse::<toml::Table>().map_err(not_toml)?;
        let mut settings = Self::default();
        settings.add_table(&lines, prefix, &table, places.get_ref())?;
        Ok(settings)
    }

    fn add_table(
        &mut self,
        lines: &Lines,
        prefix: &str,
        table: &toml::Table,
        places: &DeTable<'_>,
    ) -> Result<(), ParameterError> {
        for (name, value) in table {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let Some((spelled, there)) = places.get_key_value(name.as_str()) else { continue };
            let place = lines.place(spelled.span().start);
            if name.contains(char::is_control) {
                let what = "has control characters in its name: leave them out".to_owned();
                return Err(ParameterError::Wrong {
                    key: key.escape_debug().to_string(),
                    place: Some(place),
                    what,
                });
            }
            match (value, there.get_ref().as_table()) {
                (toml::Value::Table(table), Some(there)) if !table.contains_key("value") => {
                    self.add_table(lines, &key, table, there)?;
                }
                _ => self.add(lines.file(), key, value, place)?,
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        file: &str,
        key: String,
        value: &toml::Value,
        place: Place,
    ) -> Result<(), ParameterError> {
        let wrong = |what: &str| ParameterError::Wrong {
            key: key.clone(),
            place: Some(place.clone()),
            what: what.to_owned(),
        };
        let readable = |text: &str| {
            let is_odd = text.contains(char::is_control);
            if is_odd { Err(wrong("contains control characters: leave them out")) } else { Ok(()) }
        };
        let setting = match value {
            toml::Value::String(word) => {
                readable(word)?;
                Setting::Word(word.clone())
            }
            toml::Value::Table(_) => {
                let number = Number::deserialize(value.clone()).map_err(|error| {
                    wrong(&format!("needs value, unit, range and source ({})", error.message()))
                })?;
                let number = Number { file: file.to_owned(), ..number };
                readable(&number.unit)?;
                readable(&number.source)?;
                number.in_base().ok_or_else(|| {
                    wrong(&format!("has the unit {}, which is not known", number.unit))
                })?;
                number.check(&key, Some(&place))?;
                Setting::Number(number)
            }
            toml::Value::Integer(_)
            | toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => {
                return Err(wrong(
                    "is neither a word nor a table with value, unit, range and source",
                ));
            }
        };
        self.places.insert(key.clone(), place);
        self.entries.insert(key, setting);
        Ok(())
    }

    /// Adds the entries of another file. An entry that exists already takes precedence over one
    /// with an equal path in the other file.
    pub(crate) fn add_below(&mut self, other: Self) {
        for (key, setting) in other.entries {
            if let Entry::Vacant(vacant) = self.entries.entry(key) {
                self.places.extend(
                    other
                        .places
                        .get(vacant.key())
                        .map(|place| (vacant.key().clone(), place.clone())),
                );
                vacant.insert(setting);
            }
        }
    }

    /// Returns all entries in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.entries.iter().map(|(key, setting)| (key.as_str(), setting))
    }

    /// Returns the path of a number within its file, with the file's name in front:
    /// `lance.transmit.start` for `hosts.sender.nic.transmit.start`.
    #[must_use]
    pub fn path_in_file(&self, key: &str, number: &Number) -> String {
        let mut at = key;
        while let Some((above, _)) = at.rsplit_once('.') {
            if let Some(Setting::Word(_)) = self.entries.get(above) {
                return format!("{}{}", number.file, &key[above.len()..]);
            }
            at = above;
        }
        key.to_owned()
    }

    /// Returns the word at `key`, and records that the program has read `key`. Returns `None` if
    /// there is no entry, or the entry is a number.
    pub(crate) fn word(&self, key: &str) -> Option<&str> {
        self.read.borrow_mut().insert(key.to_owned());
        match self.entries.get(key) {
            Some(Setting::Word(word)) => Some(word),
            Some(Setting::Number(_)) | None => None,
        }
    }

    /// Replaces the word at `key`. If the old word named a file, the entries of that file are
    /// removed.
    pub(crate) fn replace_word(&mut self, key: &str, word: &str) {
        let below = format!("{key}.");
        self.entries.retain(|key, _| !key.starts_with(&below));
        self.change(key, Setting::Word(word.to_owned()));
    }

    /// Sets the entry at `key`. The entry then has no position in a file.
    fn change(&mut self, key: &str, setting: Setting) {
        self.places.remove(key);
        self.entries.insert(key.to_owned(), setting);
    }

    /// Removes and returns the word at `key`; `None` if there is no word. If there is a number, it
    /// is not removed, and is later refused as an unused entry.
    pub(crate) fn take_word(&mut self, key: &str) -> Option<String> {
        let word = match self.entries.get(key)? {
            Setting::Word(word) => word.clone(),
            Setting::Number(_) => return None,
        };
        self.entries.remove(key);
        Some(word)
    }

    /// Removes the entries below `set`, and returns them as KEY=VALUE. By these entries, a scenario
    /// changes values in the files that it names.
    pub(crate) fn take_changes(&mut self) -> Vec<String> {
        let keys: Vec<String> =
            self.entries.keys().filter(|key| key.starts_with("set.")).cloned().collect();
        let changes = keys.iter().filter_map(|key| {
            let value = self.take_word(key)?;
            Some(format!("{}={value}", key.trim_start_matches("set.")))
        });
        changes.collect()
    }

    /// Returns the names of the tables and entries directly below `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let below = format!("{prefix}.");
        let keys = self.entries.range(below.clone()..).map(|(key, _)| key);
        let names = keys.map_while(|key| key.strip_prefix(&below)?.split('.').next());
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Applies a change KEY=VALUE. KEY is the path of an entry, or the path of a number within a
    /// file, such as `sun-3-60.cost.wakeup`. In the latter case, the number is changed for all
    /// parts of the scenario that use the file.
    pub(crate) fn set(&mut self, scenario: &str, change: &str) -> Result<(), ParameterError> {
        let (key, value) =
            change.split_once('=').ok_or_else(|| ParameterError::NotAChange(change.to_owned()))?;
        let (key, value) = (key.trim(), value.trim());
        let keys = self.resolve(key);
        if keys.is_empty() {
            let hint =
                self.nearest(key).map_or_else(String::new, |name| format!(", perhaps `{name}`"));
            return Err(ParameterError::NoSuchKey {
                key: key.to_owned(),
                hint,
                scenario: scenario.to_owned(),
            });
        }
        for key in keys {
            let changed = match &self.entries[&key] {
                Setting::Number(number) => Setting::Number(number.with_value(&key, value)?),
                Setting::Word(_) => Setting::Word(value.to_owned()),
            };
            self.change(&key, changed);
        }
        Ok(())
    }

    /// Returns a path without its leading table: `sender.nic` for `hosts.sender.nic`.
    #[must_use]
    pub fn short_key(key: &str) -> &str {
        let within = |place: &str| key.strip_prefix(place)?.strip_prefix('.');
        PLACES.into_iter().find_map(within).unwrap_or(key)
    }

    /// Returns the paths of all entries to which `key` refers.
    fn resolve(&self, key: &str) -> Vec<String> {
        if self.entries.contains_key(key) {
            return vec![key.to_owned()];
        }
        let below = PLACES.map(|place| format!("{place}.{key}"));
        if let Some(known) = below.into_iter().find(|key| self.entries.contains_key(key)) {
            return vec![known];
        }
        let Some((file, rest)) = key.split_once('.') else { return Vec::new() };
        let users =
            self.entries.iter().filter(|(_, setting)| **setting == Setting::Word(file.to_owned()));
        let keys = users.map(|(user, _)| format!("{user}.{rest}"));
        keys.filter(|key| self.entries.contains_key(key)).collect()
    }

    /// Returns an existing path to suggest in an error message. The final part of this path
    /// contains the final part of `key`. Returns `None` if there is no such path.
    fn nearest(&self, key: &str) -> Option<&str> {
        let last = key.rsplit('.').next()?;
        let alike = |path: &&String| {
            path.rsplit('.').next().is_some_and(|end| end == last || end.contains(last))
        };
        self.entries.keys().find(alike).map(|path| Self::short_key(path))
    }

    /// Returns a view of all entries.
    pub(crate) fn root(&self) -> Section<'_> {
        self.section("")
    }

    /// Returns a view of the entries below `prefix`.
    pub(crate) fn section<'a>(&'a self, prefix: impl Into<String>) -> Section<'a> {
        Section { settings: self, prefix: prefix.into() }
    }

    /// Refuses unused entries, so that a misspelt key is not silently ignored.
    pub(crate) fn refuse_unread(&self) -> Result<(), ParameterError> {
        let read = self.read.borrow();
        match self.entries.keys().find(|key| !read.contains(*key)) {
            Some(key) => Err(ParameterError::Unread {
                key: key.clone(),
                place: self.places.get(key).cloned(),
            }),
            None => Ok(()),
        }
    }
}

/// A view of the entries below a path.
#[derive(Clone, Debug)]
pub(crate) struct Section<'a> {
    settings: &'a Settings,
    prefix: String,
}

impl<'a> Section<'a> {
    /// Returns a view of the entries below `name` in this section.
    pub(crate) fn below(&self, name: &str) -> Self {
        Self { settings: self.settings, prefix: self.key(name) }
    }

    fn key(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }

    /// Returns the word of entry `name`.
    pub(crate) fn word(&self, name: &str) -> Result<&'a str, ParameterError> {
        let key = self.key(name);
        self.settings.word(&key).ok_or(ParameterError::Missing { key })
    }

    /// Returns whether entry `name` exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.settings.entries.contains_key(&self.key(name))
    }

    /// Returns the error for a wrong value of entry `name`.
    pub(crate) fn wrong(&self, name: &str, what: impl Into<String>) -> ParameterError {
        let key = self.key(name);
        let place = self.settings.places.get(&key).cloned();
        ParameterError::Wrong { key, place, what: what.into() }
    }

    fn number(&self, name: &str, wanted: Dimension, what: &str) -> Result<f64, ParameterError> {
        let key = self.key(name);
        self.settings.read.borrow_mut().insert(key.clone());
        match self.settings.entries.get(&key) {
            Some(Setting::Number(number)) => {
                match number.in_base() {
                    Some((dimension, value)) if dimension == wanted && value >= 0.0 => Ok(value),
                    Some((dimension, _)) if dimension == wanted => Err(self.wrong(
                        name,
                        format!("is {} {}: it cannot be negative", number.value, number.unit),
                    )),
                    _ => Err(self
                        .wrong(name, format!("has the unit {}, but must be {what}", number.unit))),
                }
            }
            Some(Setting::Word(_)) => Err(self.wrong(name, "must be a number")),
            None => Err(ParameterError::Missing { key }),
        }
    }

    /// Returns the number of entry `name` with its unit, range and source.
    pub(crate) fn whole_number(&self, name: &str) -> Result<Number, ParameterError> {
        let key = self.key(name);
        self.settings.read.borrow_mut().insert(key.clone());
        match self.settings.entries.get(&key) {
            Some(Setting::Number(number)) => Ok(number.clone()),
            Some(Setting::Word(_)) | None => Err(ParameterError::Missing { key }),
        }
    }

    /// Returns the time of entry `name`.
    pub(crate) fn span(&self, name: &str) -> Result<Span, ParameterError> {
        Ok(Span::from_picos(whole(self.number(name, Dimension::Time, "a time")?)))
    }

    /// Returns the time per byte of entry `name`.
    pub(crate) fn span_per_byte(&self, name: &str) -> Result<Span, ParameterError> {
        Ok(Span::from_picos(whole(self.number(
            name,
            Dimension::TimePerByte,
            "a time for each byte (ns/B)",
        )?)))
    }

    /// Returns the time in entry `name`, which is the interval of a repeated action. An interval
    /// below [`SHORTEST_PAUSE`] is refused, because with an interval of zero the simulation would
    /// never end.
    pub(crate) fn pause(&self, name: &str) -> Result<Span, ParameterError> {
        let span = self.span(name)?;
        if span >= SHORTEST_PAUSE {
            Ok(span)
        } else {
            Err(self.wrong(name, "is too short: it must be at least 1 us"))
        }
    }

    /// Returns the fraction of entry `name`, between zero and one.
    pub(crate) fn share(&self, name: &str) -> Result<f64, ParameterError> {
        let share = self.number(name, Dimension::Share, "per cent")?;
        if share <= 1.0 {
            Ok(share)
        } else {
            Err(self.wrong(name, "is more than all: it must be at most 100 %"))
        }
    }

    /// Returns the percentage of entry `name`, as a whole number.
    pub(crate) fn percent(&self, name: &str) -> Result<u8, ParameterError> {
        Ok(u8::try_from(whole(self.share(name)? * 100.0)).unwrap_or(u8::MAX))
    }

    /// Returns the factor of entry `name`.
    pub(crate) fn factor(&self, name: &str) -> Result<f64, ParameterError> {
        self.number(name, Dimension::Factor, "a factor (times)")
    }

    /// Returns the bit rate of entry `name`, which may be zero.
    pub(crate) fn rate(&self, name: &str) -> Result<Rate, ParameterError> {
        let bits = self.number(name, Dimension::Rate, "a bit rate")?;
        Ok(Rate::from_bits_per_second(whole(bits)))
    }

    /// Returns the bit rate in entry `name`, which is that of a wire. Zero is refused, because
    /// sending a bit would never end. A rate above [`FASTEST`] is refused, because a bit would be
    /// shorter than the resolution of simulated time.
    pub(crate) fn wire_rate(&self, name: &str) -> Result<Rate, ParameterError> {
        let rate = self.rate(name)?;
        if (1..=FASTEST).contains(&rate.bits_per_second()) {
            return Ok(rate);
        }
        Err(self.wrong(name, "is not a possible bit rate: it must be from 1 b/s to 1,000 Gb/s"))
    }

    /// Returns the count of entry `name`, which may have a fractional part.
    pub(crate) fn real(&self, name: &str) -> Result<f64, ParameterError> {
        self.number(name, Dimension::Count, "a number of something")
    }

    /// Returns the frequency of entry `name` in Hz.
    pub(crate) fn frequency(&self, name: &str) -> Result<f64, ParameterError> {
        self.number(name, Dimension::Frequency, "a clock (MHz)")
    }

    /// Returns the count of entry `name`, a whole number.
    pub(crate) fn count(&self, name: &str) -> Result<u64, ParameterError> {
        Ok(whole(self.number(name, Dimension::Count, "a number of something")?))
    }

    /// Returns the count of entry `name`, as the size of a structure in memory.
    pub(crate) fn size(&self, name: &str) -> Result<usize, ParameterError> {
        Ok(usize::try_from(self.count(name)?).unwrap_or(usize::MAX))
    }

    /// Returns the count in entry `name`. A count outside `range`, the limits of the simulator, is
    /// refused. The file's own range may be wider.
    pub(crate) fn count_within(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, ParameterError> {
        let count = self.count(name)?;
        if range.contains(&count) {
            return Ok(count);
        }
        let (least, most) = range.into_inner();
        let what = if count < least {
            format!("is {count}: it must be at least {least}")
        } else {
            format!("is {count}: it must be at most {most}")
        };
        Err(self.wrong(name, what))
    }

    /// Returns the count of entry `name`, which is the size of a structure in memory. A count
    /// outside `range`, the limits of the simulator, is refused.
    pub(crate) fn size_within(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<usize, ParameterError> {
        Ok(usize::try_from(self.count_within(name, range)?).unwrap_or(usize::MAX))
    }

    /// Returns the count of entry `name`, from 1 to `most`. It is 1 if the entry does not exist.
    pub(crate) fn several(&self, name: &str, most: u16) -> Result<NonZeroU16, ParameterError> {
        if !self.has(name) {
            return Ok(NonZeroU16::MIN);
        }
        let count = self.real(name)?;
        let number =
            (1..=most).find(|&number| f64::from(number) == count).and_then(NonZeroU16::new);
        number.ok_or_else(|| {
            self.wrong(name, format!("is {count}: it must be a whole number from 1 to {most}"))
        })
    }

    /// Returns whether the switch of entry `name` is on.
    pub(crate) fn switch(&self, name: &str) -> Result<bool, ParameterError> {
        Ok(self.number(name, Dimension::Switch, "a switch (0 or 1)")? >= 0.5)
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ranges of parameters are checked; a float that is too large or negative saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        host = "here"
        [cost]
        copy = { value = 137, unit = "ns/B", range = [50, 400], source = "a test" }
        on = { value = 1, unit = "switch", range = [0, 1], source = "a test" }
    "#;

    fn settings() -> Settings {
        Settings::parse("a file", TEXT, "here").unwrap()
    }

    #[test]
    fn a_number_is_read_in_its_unit() {
        let settings = settings();
        let cost = settings.section("here.cost");
        assert_eq!(cost.span_per_byte("copy"), Ok(Span::from_picos(137_000)));
        assert_eq!(cost.switch("on"), Ok(true));
        assert!(cost.span("copy").unwrap_err().to_string().contains("must be a time"));
        assert!(cost.span("paste").unwrap_err().to_string().contains("here.cost.paste is missing"));
    }

    #[test]
    fn a_change_must_have_a_known_key_and_a_value_in_range() {
        let mut settings = settings();
        settings.set("s", "here.cost.copy=200").unwrap();
        assert_eq!(
            settings.section("here.cost").span_per_byte("copy"),
            Ok(Span::from_picos(200_000))
        );
        let refused = |settings: &mut Settings, change: &str| {
            settings.set("s", change).unwrap_err().to_string()
        };
        assert_eq!(
            refused(&mut settings, "here.cost.copy=999"),
            "here.cost.copy = 999 ns/B is out of range: it lies between 50 and 400 ns/B"
        );
        assert!(
            refused(&mut settings, "cost.copi=1").contains("there is no parameter `cost.copi`")
        );
        assert!(refused(&mut settings, "x.copy=1").contains("perhaps `here.cost.copy`"));
        assert!(refused(&mut settings, "nonsense").contains("KEY=VALUE"));
        settings.set("s", "here.cost.on=off").unwrap();
        assert_eq!(settings.section("here.cost").switch("on"), Ok(false));
    }

    #[test]
    fn unread_entries_are_refused() {
        let settings = settings();
        let cost = settings.section("here.cost");
        cost.span_per_byte("copy").unwrap();
        settings.word("here.host").unwrap();
        let line = "here.cost.on, line 5 of a file, means nothing here";
        assert!(settings.refuse_unread().unwrap_err().to_string().starts_with(line));
    }
}
