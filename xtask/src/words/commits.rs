//! Checks the subjects of commits.

use super::finding::{Breach, Finding, Place, SUBJECT_LENGTH};
use crate::error::Error;
use std::path::Path;
use std::process::Command;

/// Returns the violations in the subjects of commits after `base`. A folder without a git
/// repository, such as an unpacked archive, has no commits.
pub(super) fn check(root: &Path, base: &str) -> Result<Vec<Finding>, Error> {
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let start = |source| Error::Start { command: "git log".to_owned(), source };
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "--no-merges", "--format=%h %s", &format!("{base}..HEAD")])
        .output()
        .map_err(start)?;
    if !output.status.success() {
        return Err(Error::Commits {
            base: base.to_owned(),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().flat_map(check_line).collect())
}

/// Checks a line of git's log, which has an abbreviated hash and a subject.
fn check_line(line: &str) -> Vec<Finding> {
    let (hash, subject) = line.split_once(' ').unwrap_or((line, ""));
    let place = || Place::Commit { hash: hash.to_owned(), subject: subject.to_owned() };
    breaches(subject).into_iter().map(|breach| Finding { place: place(), breach }).collect()
}

fn breaches(subject: &str) -> Vec<Breach> {
    let mut found = Vec::new();
    let length = subject.chars().count();
    if length > SUBJECT_LENGTH {
        found.push(Breach::SubjectLength(length));
    }
    if subject.ends_with('.') {
        found.push(Breach::SubjectStop);
    }
    if !subject.split_once(": ").is_some_and(|(area, text)| is_area(area) && !text.is_empty()) {
        found.push(Breach::SubjectArea);
    }
    found
}

/// Does the text name parts of the project, as in `sim/bus`, `tcp, stack` or `README`?
fn is_area(text: &str) -> bool {
    text.split(", ").all(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "/_-.".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_subject_names_its_area_and_is_short() {
        let subject = |length: usize| format!("tcp: {}", "é".repeat(length - 5));
        for good in [
            "sim/bus: keep the gap",
            "tcp, stack: rename a",
            ".ci: a",
            "README: a: b",
            &subject(72),
        ] {
            assert_eq!(breaches(good), [], "{good}");
        }
        assert_eq!(breaches(&subject(73)), [Breach::SubjectLength(73)]);
        assert_eq!(breaches("tcp: keep the gap."), [Breach::SubjectStop]);
        for bad in ["keep the gap", "tcp:keep", "two words: keep", ": keep", "tcp: ", "tcp,: a", ""]
        {
            assert_eq!(breaches(bad), [Breach::SubjectArea], "{bad}");
        }
    }

    /// Runs git in a folder, and returns its output.
    fn git(folder: &Path, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(identity).args(arguments);
        let output = command.output().expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Creates a repository that has a commit with each of these subjects.
    fn repository(subjects: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]);
        for subject in subjects {
            git(folder.path(), &["commit", "--quiet", "--allow-empty", "--message", subject]);
        }
        let path = folder.path().to_owned();
        (folder, path)
    }

    #[test]
    fn subjects_are_checked_after_the_base_only() {
        let (_folder, path) =
            repository(&["An old one.", "tcp: the base", "tcp: good", "A bad one"]);
        let base = git(&path, &["rev-parse", "HEAD~2"]);
        let hash = git(&path, &["rev-parse", "--short", "HEAD"]);
        let found = check(&path, &base).unwrap();
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [format!("commit {hash} `A bad one`: write the subject as `area: imperative subject`")]
        );
    }

    #[test]
    fn an_unknown_base_is_an_error_and_a_folder_without_git_has_no_commits() {
        let (_folder, path) = repository(&["tcp: good"]);
        let error = check(&path, &"0".repeat(40)).unwrap_err();
        assert!(matches!(error, Error::Commits { .. }), "{error}");
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(check(empty.path(), "HEAD").unwrap(), []);
    }
}
