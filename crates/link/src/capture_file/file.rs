//! A capture file that is created or truncated only once there is something to write.

use super::sink::Sink;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is truncated by the first write, not when it is opened. If nothing is ever written,
/// an existing file keeps its contents. A file that this value has created is deleted when the
/// value is dropped. So a program that fails before its first packet leaves the disk unchanged.
#[derive(Debug)]
pub struct CaptureFile {
    file: File,
    is_begun: bool,
    /// The path of the file, if dropping this value must delete the file: this value has created
    /// it, and nothing has been written yet.
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
                    // The path exists but cannot be opened: it is a symbolic link to a file that
                    // does not exist. So the target of the symbolic link is created.
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
        // Only a regular file can be truncated. The path may also be that of a pipe or a device.
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
