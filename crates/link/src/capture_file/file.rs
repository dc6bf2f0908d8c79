//! The file of a capture, which nothing happens to before there is something to write.

use super::Sink;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that begins with its first bytes. Until then one that was there stays as it is; one that was not is gone
/// again if none come, so that whoever is refused after opening it has done no harm.
#[derive(Debug)]
pub struct CaptureFile {
    file: File,
    is_begun: bool,
    /// Where it is, as long as nothing is in it, if nothing was there.
    made: Option<PathBuf>,
}

impl CaptureFile {
    /// # Errors
    /// Why the file cannot be written.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => Ok(Self { file, is_begun: false, made: Some(path.to_owned()) }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match OpenOptions::new().write(true).open(path) {
                    Ok(file) => Ok(Self { file, is_begun: false, made: None }),
                    // A link to where no file is yet.
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
        // Pipes and devices have nothing that could be taken away.
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
            // Whoever has taken it away already wanted the same.
            let _ = fs::remove_file(path);
        }
    }
}
