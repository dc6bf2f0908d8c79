//! `cargo xtask words`: the rules of the project's language that a program can check.
//!
//! - Retired terms are refused, in identifiers, comments, texts and paths: `words.toml` lists them
//!   with the standard terms that replace them.
//! - A comment opens with a thing or a verb, not with a clause ("Who …", "What …").
//! - A line has at most 100 columns.
//! - No marker of a merge conflict is left.
//! - The subject of a commit is `area: imperative subject`, of at most 72 characters.

mod commits;
mod config;
mod files;
mod finding;
mod piece;
mod rules;
mod vocabulary;

use crate::error::Error;
use crate::workspace::root;
use config::Config;
use finding::Finding;
use rules::Rules;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks the configured folders, and the subjects of new commits.
pub(crate) fn run() -> Result<(), Error> {
    let root = root();
    let config = Config::read(&root)?;
    let mut found = check_files(&root, &config, &config.clean)?;
    found.extend(commits::check(&root, &config.subjects_after)?);
    report(&found)
}

/// Checks `paths`, folders and files relative to the root folder. They need not be listed in the
/// configuration.
pub(crate) fn run_on(paths: &[String]) -> Result<(), Error> {
    let root = root();
    let config = Config::read(&root)?;
    let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
    report(&check_files(&root, &config, &paths)?)
}

fn report(found: &[Finding]) -> Result<(), Error> {
    for finding in found {
        eprintln!("{finding}");
    }
    if found.is_empty() { Ok(()) } else { Err(Error::Words { count: found.len() }) }
}

fn check_files(root: &Path, config: &Config, paths: &[PathBuf]) -> Result<Vec<Finding>, Error> {
    let rules = Rules::new(config);
    let mut found = Vec::new();
    for path in paths {
        for (file, language) in files::list(root, path)? {
            // The configuration file lists the retired terms, so a check would report all of them.
            if file == Path::new(config::FILE) {
                continue;
            }
            let full = root.join(&file);
            let text = fs::read_to_string(&full);
            let text = text.map_err(|source| Error::Read { path: full, source })?;
            found.extend(rules.check(&file, language, &text));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_folders_have_no_violations() {
        let config = Config::read(&root()).unwrap();
        let found = check_files(&root(), &config, &config.clean).unwrap();
        assert!(found.is_empty(), "{}", found.iter().map(|f| format!("\n{f}")).collect::<String>());
    }

    /// Creates a project with these files in a temporary directory, and reads its configuration.
    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        let config = "clean = ['a', 'b/c.md']
            subjects_after = ''
            openings = ['Who']
            allowed = []
            retired = [{ words = ['gizmo'], instead = 'device' }]";
        for (path, text) in files.iter().chain(&[(config::FILE, config)]) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let config = Config::read(folder.path()).unwrap();
        (folder, config)
    }

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let (folder, config) = project(files);
        let found = check_files(folder.path(), &config, &config.clean).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn files_below_a_clean_folder_are_checked_and_others_are_not() {
        let files = [
            ("a/x.rs", "gizmo\n"),
            ("a/b/y.toml", "# Who\n"),
            ("a/z.bin", "gizmo\n"),
            ("a/target/x.rs", "gizmo\n"),
            ("a/.hidden/x.rs", "gizmo\n"),
            ("b/c.md", "gizmo\n"),
            ("b/d.md", "gizmo\n"),
        ];
        assert_eq!(
            findings(&files),
            [
                "a/b/y.toml:1: the comment opens with `Who`: make a thing its subject, or say what \
                 the item does",
                "a/x.rs:1: `gizmo` is retired: write device",
                "b/c.md:1: `gizmo` is retired: write device",
            ]
        );
    }

    #[test]
    fn a_clean_folder_that_does_not_exist_is_an_error() {
        let (folder, config) = project(&[("a/x.rs", "")]);
        let error = check_files(folder.path(), &config, &config.clean).unwrap_err();
        assert!(error.to_string().contains("b/c.md cannot be read"), "{error}");
    }
}
