//! What the command says when it is done, and its exit code.

use linerate_measure::{BenchError, Fault, StoreError};
use linerate_report::Style;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why a command did not do what it was asked to: one line for people, and who can mend it.
#[derive(Debug)]
pub(crate) struct Failure {
    line: String,
    fault: Fault,
}

impl Failure {
    /// The person who typed the command, or the machine it was typed on, has to change something.
    pub(crate) fn input(line: impl Into<String>) -> Self {
        Self { line: line.into(), fault: Fault::Input }
    }

    /// Something broke on the way.
    pub(crate) fn running(line: impl Into<String>) -> Self {
        Self { line: line.into(), fault: Fault::Running }
    }

    /// Somebody asked to stop.
    pub(crate) fn interrupted(line: impl Into<String>) -> Self {
        Self { line: line.into(), fault: Fault::Interrupted }
    }

    /// The same, and what became of the work until then.
    pub(crate) fn and(self, what: &str) -> Self {
        Self { line: format!("{}; {what}", self.line), ..self }
    }

    /// 2 for what the caller can mend, 1 for what broke, 130 after an interruption (as shells count
    /// SIGINT).
    fn exit_code(&self) -> u8 {
        match self.fault {
            Fault::Input => 2,
            Fault::Running => 1,
            Fault::Interrupted => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Input | Fault::Running => write!(f, "error: {}", self.line),
            Fault::Interrupted => f.write_str(&self.line),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        Self { line: error.to_string(), fault: error.fault() }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::input(error.to_string())
    }
}

/// What the reader of standard output can see: colours on a terminal, unless they are not wanted
/// (`NO_COLOR`, no-color.org) or there are none.
pub(crate) fn style() -> Style {
    if !io::stdout().is_terminal() {
        return Style::PLAIN;
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let colour = set("NO_COLOR").is_none() && set("TERM").is_none_or(|terminal| terminal != "dumb");
    let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    Style { colour, width: width.max(20) }
}

/// Files of results that were asked for. Whether they can be written is found out before the work,
/// not after it; `cannot` says what it means if not. Whatever ends the work, no file is there then
/// that was not there before.
pub(crate) fn can_be_written<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    cannot: impl Fn(&Path, io::Error) -> Failure,
) -> Result<(), Failure> {
    paths.into_iter().try_for_each(|path| try_to_open(path).map_err(|error| cannot(path, error)))
}

/// Opens a file for writing, and leaves what is there as it is: a file, or none.
fn try_to_open(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match OpenOptions::new().append(true).open(path) {
                // A link to a file that is not there yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    try_to_open(&path.with_file_name(fs::read_link(path)?))
                }
                opened => opened.map(drop),
            }
        }
        Err(error) => Err(error),
    }
}

/// Refuses to write two results into one file, or one over what is read or `kept`. A device or a
/// pipe takes whatever comes.
pub(crate) fn are_apart<'a>(
    written: impl IntoIterator<Item = &'a Path>,
    kept: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let mut taken: Vec<PathBuf> = kept.into_iter().map(place).collect();
    let kept = taken.len();
    for path in written {
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            continue;
        }
        let place = place(path);
        let remedy = match taken.iter().position(|other| *other == place) {
            None => {
                taken.push(place);
                continue;
            }
            Some(index) if index < kept => "is needed, and would be overwritten: name another file",
            Some(_) => "would get two results, one over the other: name a file for each",
        };
        return Err(Failure::input(format!("{} {remedy}", path.display())));
    }
    Ok(())
}

/// Where `path` leads, also if there is no file yet.
fn place(path: &Path) -> PathBuf {
    let to_come = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(
            fs::canonicalize(folder.unwrap_or_else(|| Path::new(".")))
                .ok()?
                .join(path.file_name()?),
        )
    };
    fs::canonicalize(path).ok().or_else(to_come).unwrap_or_else(|| path.to_owned())
}

/// Writes what `make` makes, if there is a file for it; `cannot` says what it means if the system
/// does not.
pub(crate) fn write_file(
    path: Option<&Path>,
    make: impl FnOnce() -> String,
    cannot: impl Fn(&Path, io::Error) -> Failure,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    fs::write(path, make()).map_err(|error| cannot(path, error))
}

/// A file of results, or a capture, that the system does not take, where the work can be done
/// again.
#[expect(clippy::needless_pass_by_value, reason = "the form that is asked for above")]
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::input(format!("{} cannot be written ({error}): name a file that can", path.display()))
}

/// Prints to standard output. A reader that has gone away (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_if_read(text).map(|_| ())
}

/// Prints to standard output; false if there is no reader any more.
pub(crate) fn print_if_read(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Many lines for standard output.
#[derive(Debug)]
pub(crate) struct Page(BufWriter<StdoutLock<'static>>);

impl Page {
    /// An empty page.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout().lock()))
    }

    /// Adds `text` and a line end; false if there is no reader any more.
    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) -> Result<bool, Failure> {
        is_read(writeln!(self.0, "{text}"))
    }

    /// Shows what has been added so far; false if there is no reader any more.
    pub(crate) fn show(&mut self) -> Result<bool, Failure> {
        is_read(self.0.flush())
    }
}

/// Does somebody read what is written?
fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::input(format!(
            "standard output cannot be written ({error}): see where it goes"
        ))),
    }
}

/// The end of the command: its one line on standard error, if it failed, and its exit code.
pub(crate) fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody is left to tell if standard error is closed.
            let _ = writeln!(io::stderr(), "{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_whether_a_file_can_be_written_leaves_the_folder_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, new, link] = ["kept", "new", "link"].map(|name| folder.path().join(name));
        fs::write(&kept, "of great worth").unwrap();
        std::os::unix::fs::symlink("behind-the-link", &link).unwrap();
        can_be_written([&kept, &new, &link].map(|path| path.as_path()), cannot_write).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "of great worth");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("behind-the-link"));
        std::os::unix::fs::symlink("nowhere/x", folder.path().join("astray")).unwrap();
        for wrong in ["", "astray", "nowhere/x"] {
            let line = can_be_written([&*folder.path().join(wrong)], cannot_write)
                .unwrap_err()
                .to_string();
            assert!(line.contains("cannot be written"), "{line}");
        }
    }

    #[test]
    fn one_file_is_not_written_twice_nor_over_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, new, link] = ["kept", "new", "link"].map(|name| folder.path().join(name));
        fs::write(&kept, "").unwrap();
        std::os::unix::fs::symlink("kept", &link).unwrap();
        let roundabout = folder.path().join(".").join("new");
        are_apart([&*kept, &new], []).unwrap();
        are_apart([Path::new("/dev/null"); 2], []).unwrap();
        for (written, kept, says) in [
            ([&*new, &roundabout], &*kept, "two results"),
            ([&*kept, &link], &*new, "two results"),
            ([&*new, &link], &*kept, "would be overwritten"),
        ] {
            let line = are_apart(written, [kept]).unwrap_err().to_string();
            assert!(line.contains(says), "{line}");
        }
    }

    #[test]
    fn whose_fault_it_is_decides_the_exit_code() {
        assert_eq!(Failure::input("x").exit_code(), 2);
        assert_eq!(Failure::running("x").exit_code(), 1);
        assert_eq!(Failure::interrupted("x").exit_code(), 130);
        assert_eq!(Failure::from(BenchError::PortInUse { port: 7 }).exit_code(), 2);
    }
}
