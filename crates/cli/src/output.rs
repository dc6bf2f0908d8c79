//! Output of the commands, error messages, and exit codes.

use linerate_measure::{BenchError, Fault, StoreError};
use linerate_report::Style;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The reason why a command failed: one line of text for the user, and the kind of fault, which
/// determines the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    line: String,
    fault: Fault,
}

impl Failure {
    /// Creates a failure whose cause the user or the machine's administrator can remove (exit code
    /// 2).
    pub(crate) fn input(line: impl Into<String>) -> Self {
        Self { line: line.into(), fault: Fault::Input }
    }

    /// Creates a failure that occurred during execution (exit code 1).
    pub(crate) fn running(line: impl Into<String>) -> Self {
        Self { line: line.into(), fault: Fault::Running }
    }

    /// Creates the failure of an interrupted command (exit code 130).
    pub(crate) fn interrupted(line: impl Into<String>) -> Self {
        Self { line: line.into(), fault: Fault::Interrupted }
    }

    /// Appends `what` to the line of the failure. `what` says which results exist nevertheless,
    /// such as the number of saved runs.
    pub(crate) fn and(self, what: &str) -> Self {
        Self { line: format!("{}; {what}", self.line), ..self }
    }

    /// Returns 2 for errors that the user can resolve, 1 for failures during execution, and 130
    /// after an interrupt (the convention of shells for SIGINT).
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

/// Returns the style of the report: the width of standard output in columns, and whether to print
/// colours. Colours need a terminal that supports them, and are off if `NO_COLOR` is set
/// (no-color.org).
pub(crate) fn style() -> Style {
    if !io::stdout().is_terminal() {
        return Style::PLAIN;
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let colour = set("NO_COLOR").is_none() && set("TERM").is_none_or(|terminal| terminal != "dumb");
    let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    Style { colour, width: width.max(20) }
}

/// Checks that files can be written, and leaves no new file behind. Commands call this function
/// before long work, whose results would be lost if a file cannot be written. `cannot` converts an
/// I/O error to a failure.
pub(crate) fn can_be_written<'a>(
    paths: impl IntoIterator<Item = &'a Path>,
    cannot: impl Fn(&Path, io::Error) -> Failure,
) -> Result<(), Failure> {
    paths.into_iter().try_for_each(|path| try_to_open(path).map_err(|error| cannot(path, error)))
}

/// Tests whether a file can be opened for writing. An existing file is not changed, and a new file
/// is removed again.
fn try_to_open(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match OpenOptions::new().append(true).open(path) {
                // The path exists, but opening it finds no file: it is a symbolic link whose target
                // does not exist yet. The test is therefore repeated with the path of the target.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    try_to_open(&path.with_file_name(fs::read_link(path)?))
                }
                opened => opened.map(drop),
            }
        }
        Err(error) => Err(error),
    }
}

/// Checks that no result overwrites another file. Returns an error if two results would go to one
/// file. Also returns an error if a result would overwrite one of `kept`, the files that the
/// command needs. Devices and pipes may receive several results.
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

/// Resolves symbolic links in a path, so that different paths of one file become equal. The final
/// component of the path may not exist yet.
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

/// Writes the text that `make` returns to the file at `path`. Does nothing if `path` is `None`.
/// `cannot` converts an I/O error to a failure.
pub(crate) fn write_file(
    path: Option<&Path>,
    make: impl FnOnce() -> String,
    cannot: impl Fn(&Path, io::Error) -> Failure,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    fs::write(path, make()).map_err(|error| cannot(path, error))
}

/// Converts the error of writing a file to a failure. The contents of such a file can be computed
/// again, so no data is lost. The message therefore only suggests another file name.
#[expect(clippy::needless_pass_by_value, reason = "the signature that `write_file` requires")]
pub(crate) fn cannot_write(path: &Path, error: io::Error) -> Failure {
    Failure::input(format!("{} cannot be written ({error}): name a writable file", path.display()))
}

/// Prints to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_if_read(text).map(|_| ())
}

/// Prints to standard output. Returns false if standard output is a closed pipe, so that nothing
/// more needs to be printed.
pub(crate) fn print_if_read(text: &str) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Standard output with a buffer, for commands that print many lines.
#[derive(Debug)]
pub(crate) struct Page(BufWriter<StdoutLock<'static>>);

impl Page {
    /// Locks standard output, and creates an empty buffer.
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout().lock()))
    }

    /// Adds `text` and a line end. Returns false if standard output is a closed pipe.
    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) -> Result<bool, Failure> {
        is_read(writeln!(self.0, "{text}"))
    }

    /// Writes the buffer. Returns false if standard output is a closed pipe.
    pub(crate) fn show(&mut self) -> Result<bool, Failure> {
        is_read(self.0.flush())
    }
}

/// Converts the result of a write to standard output. Returns true for success, false if a closed
/// pipe was the cause, and an error for any other failure.
fn is_read(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::input(format!(
            "standard output cannot be written ({error}): check where it is redirected"
        ))),
    }
}

/// Prints the error line of a failed command to standard error. Returns the exit code.
pub(crate) fn finish(result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(failure) => {
            // Errors are ignored: if standard error cannot be written, the exit code alone shows
            // the failure.
            let _ = writeln!(io::stderr(), "{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checking_whether_a_file_is_writable_does_not_change_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, new, link] = ["kept", "new", "link"].map(|name| folder.path().join(name));
        fs::write(&kept, "content").unwrap();
        std::os::unix::fs::symlink("behind-the-link", &link).unwrap();
        can_be_written([&kept, &new, &link].map(|path| path.as_path()), cannot_write).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "content");
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
    fn a_file_is_not_written_twice_and_no_input_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [kept, new, link] = ["kept", "new", "link"].map(|name| folder.path().join(name));
        fs::write(&kept, "").unwrap();
        std::os::unix::fs::symlink("kept", &link).unwrap();
        let roundabout = folder.path().join(".").join("new");
        are_apart([&*kept, &new], []).unwrap();
        are_apart([Path::new("/dev/null"); 2], []).unwrap();
        for (written, kept, expected_text) in [
            ([&*new, &roundabout], &*kept, "two results"),
            ([&*kept, &link], &*new, "two results"),
            ([&*new, &link], &*kept, "would be overwritten"),
        ] {
            let line = are_apart(written, [kept]).unwrap_err().to_string();
            assert!(line.contains(expected_text), "{line}");
        }
    }

    #[test]
    fn the_exit_code_depends_on_the_fault() {
        assert_eq!(Failure::input("x").exit_code(), 2);
        assert_eq!(Failure::running("x").exit_code(), 1);
        assert_eq!(Failure::interrupted("x").exit_code(), 130);
        assert_eq!(Failure::from(BenchError::PortInUse { port: 7 }).exit_code(), 2);
    }
}
