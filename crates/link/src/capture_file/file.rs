//! A capture file that stays unchanged until there is something to write.

use super::sink::Sink;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is truncated by its first write, not when it is opened. Without a write, an existing
/// file stays unchanged, and a new one is deleted when this value is dropped. A program that fails
/// before the first packet thus leaves no trace.
#[derive(Debug)]
pub struct CaptureFile {
    file: File,
    is_begun: bool,
    /// The path, if this value created the file and nothing has been written yet; otherwise `None`.
    made: Option<PathBuf>,
}

impl CaptureFile {
    /// Opens or creates a file for a capture.
    ///
    /// # Errors
    /// The error of the operating system.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => Ok(Self { file, is_begun: false, made: Some(path.to_owned()) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match OpenOptions::new().write(true).open(path) {
                    Ok(file) => Ok(Self { file, is_begun: false, made: None }),
                    // The path is a symbolic link to a missing file, so create that file.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Self::open(&path.with_file_name(fs::read_link(path)?))
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.made = None;
        // Pipes and devices cannot be truncated, so only a regular file is truncated.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.is_begun = true;
        Ok(())
    }
}

impl Write for CaptureFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_begun {
            self.begin()?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink for CaptureFile {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.cut(length)
    }
}

impl Drop for CaptureFile {
    fn drop(&mut self) {
        if let Some(path) = self.made.take() {
            // An error means that the file has been deleted already, which is the wanted result.
            let _ = fs::remove_file(path);
        }
    }
}
