//! `cargo xtask api`: compares the public items of the crates that applications use with the
//! listings in `docs/api/`, so that every change of an interface is noticed. It also finds public
//! types whose documentation has no example.
//!
//! The task scans the source line by line, without a parser. This suffices, because rustfmt
//! determines the layout, and the lint `unreachable_pub` ensures that every `pub` item is
//! reachable.

use crate::error::Error;
use crate::workspace::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose public items are listed.
const CRATES: [&str; 3] = ["gateway", "sockets", "tokio"];

/// Compares the public items of all listed crates with their listings, and checks that their types
/// have examples.
pub(crate) fn compare() -> Result<(), Error> {
    let mut changed = Vec::new();
    let mut missing = Vec::new();
    for name in CRATES {
        let (path, sources) = (listing_path(name), sources(name)?);
        let listing = listing(&sources);
        let accepted = fs::read_to_string(&path).unwrap_or_default();
        for line in listing.lines().filter(|line| !accepted.lines().any(|known| known == *line)) {
            changed.push(format!("+ {name}: {line}"));
        }
        for line in accepted.lines().filter(|line| !listing.lines().any(|known| known == *line)) {
            changed.push(format!("- {name}: {line}"));
        }
        for (place, content) in &sources {
            let items = without_example(content).into_iter();
            missing.extend(items.map(|item| format!("{name}/{}: {item}", place.display())));
        }
    }
    if !missing.is_empty() {
        return Err(Error::Examples { missing: missing.join("\n") });
    }
    if changed.is_empty() { Ok(()) } else { Err(Error::Api { changed: changed.join("\n") }) }
}

/// Writes the listings of all listed crates.
pub(crate) fn accept() -> Result<(), Error> {
    for name in CRATES {
        let (path, listing) = (listing_path(name), listing(&sources(name)?));
        let write = |path: &Path| {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            fs::write(path, listing)
        };
        write(&path).map_err(|source| Error::Write { path, source })?;
    }
    Ok(())
}

/// Returns the path of a crate's listing.
fn listing_path(name: &str) -> PathBuf {
    root().join("docs/api").join(format!("{name}.txt"))
}

/// Returns the text that the listing of a crate with these source files should have.
fn listing(sources: &[(PathBuf, String)]) -> String {
    let mut text = String::new();
    for (place, content) in sources {
        let items = items(content);
        if !items.is_empty() {
            text.push_str(&format!("{}\n", place.display()));
            items.iter().for_each(|item| text.push_str(&format!("    {item}\n")));
        }
    }
    text
}

/// Returns the source files of a crate, in the order of their paths, with their contents.
fn sources(name: &str) -> Result<Vec<(PathBuf, String)>, Error> {
    let source = root().join("crates").join(name).join("src");
    let mut files = Vec::new();
    collect(&source, &mut files)?;
    files.sort();
    let read = |file: PathBuf| {
        let content = fs::read_to_string(&file);
        let content = content.map_err(|source| Error::Read { path: file.clone(), source })?;
        Ok((file.strip_prefix(&source).unwrap_or(&file).to_owned(), content))
    };
    files.into_iter().map(read).collect()
}

/// Returns the public types and traits of a source file whose documentation has no example.
fn without_example(source: &str) -> Vec<&str> {
    let mut missing = Vec::new();
    let mut has_example = false;
    for line in source.lines().take_while(|line| *line != "#[cfg(test)]") {
        if line.starts_with("///") {
            has_example |= line.contains("```");
        } else if !line.starts_with('#') {
            let is_type = ["pub struct ", "pub enum ", "pub trait "]
                .iter()
                .any(|kind| line.starts_with(kind));
            if is_type && !has_example {
                missing.push(line.trim_end_matches([' ', '{', ';']));
            }
            has_example = false;
        }
    }
    missing
}

/// Appends the paths of the source files in a folder and its subfolders.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let error = |source| Error::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the public items of a source file, one line each. The line of a method begins with the
/// header of its `impl`.
fn items(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut context = String::new();
    // True inside a public enum or trait, whose members are public without the word `pub`.
    let mut is_all_public = false;
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.ends_with('{')) {
            break;
        }
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim_start());
        if indent == 0 && (text == "}" || text.starts_with("macro_rules!")) {
            context.clear();
            is_all_public = false;
        }
        if text.starts_with("//") || text.starts_with('#') {
            continue;
        }
        let is_impl = indent == 0 && text.starts_with("impl");
        let is_public = text.starts_with("pub ");
        let is_member = indent == 4 && is_all_public && text.starts_with(char::is_alphabetic);
        if !(is_impl || is_public || is_member) {
            continue;
        }
        let mut item = text.to_owned();
        while !ends_item(&item)
            && let Some(next) = lines.next()
        {
            item.push(' ');
            item.push_str(next.trim());
        }
        let opens = item.ends_with('{');
        let item = tidy(&item);
        if is_impl {
            // The header of a trait's implementation is listed, but its methods are not, because
            // the trait determines them. The header of an inherent implementation is only stored,
            // because it precedes each of its methods in the listing.
            context.clone_from(&item);
            if item.contains(" for ") && !item.contains("sealed::") {
                found.push(item);
            }
        } else if indent == 0 {
            is_all_public = opens && ["enum", "trait"].iter().any(|kind| item.contains(kind));
            context.clone_from(&item);
            found.push(item);
        } else {
            found.push(format!("{context} :: {item}"));
        }
    }
    found
}

/// Is the text of an item complete in `item`? It is complete if it reaches the start of the item's
/// body, or the end of an item without a body.
fn ends_item(item: &str) -> bool {
    let count = |character| item.matches(character).count();
    let is_closed = count('(') == count(')') && count('[') == count(']');
    is_closed && (item.ends_with(['{', ';', ',', '}']))
}

/// Returns the text of an item in one line, without its body and its `where` clause.
fn tidy(item: &str) -> String {
    let item = item.trim_end_matches(['{', ';', ',', ' ']);
    let item = item.split(" where ").next().unwrap_or(item);
    item.replace("( ", "(").replace(", )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_listed_with_their_type_and_without_bodies() {
        let source = "\
//! A file.

/// A kind.
#[derive(Clone)]
pub enum Kind {
    /// One.
    One,
    Two(u8),
}

pub struct Thing {
    pub open: u8,
    closed: u8,
}

impl Thing {
    /// Makes one.
    pub fn new(
        open: u8,
        closed: u8,
    ) -> Self {
        Self { open, closed }
    }

    pub(crate) fn hidden(&self) {}
}

impl Clone for Thing {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

pub trait Does {
    fn it(&self);
}

#[cfg(test)]
mod tests {
    pub fn not_listed() {}
}
";
        let expected = [
            "pub enum Kind",
            "pub enum Kind :: One",
            "pub enum Kind :: Two(u8)",
            "pub struct Thing",
            "pub struct Thing :: pub open: u8",
            "impl Thing :: pub fn new(open: u8, closed: u8) -> Self",
            "impl Clone for Thing",
            "pub trait Does",
            "pub trait Does :: fn it(&self)",
        ];
        assert_eq!(items(source), expected);
    }

    #[test]
    fn types_without_an_example_are_found() {
        let source = "\
/// One.
///
/// ```
/// let one = 1;
/// ```
#[derive(Clone)]
pub struct One {
    /// Two.
    pub two: u8,
}

/// Three.
#[derive(Clone)]
pub enum Three {}

/// ```
/// a_function();
/// ```
pub fn a_function() {}

pub trait Four: Sized {
    fn four();
}

struct Private;

#[cfg(test)]
pub struct NotListed;
";
        assert_eq!(without_example(source), ["pub enum Three {}", "pub trait Four: Sized"]);
    }
}
