//! Headless Chromium, which draws and checks HTML pages.

use crate::error::Error;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names under which Chromium is installed, the most likely one first.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Chromium's option that makes a picture smaller than the page: 0.75 pixels for each pixel of the
/// page.
const SCALE: &str = "--force-device-scale-factor=0.75";

/// A colour scheme. Each number is the value of Chromium's setting `preferredColorScheme`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scheme {
    Dark = 0,
    Light = 1,
}

/// Returns the HTML of a page after its scripts have run.
pub(crate) fn content(page: &Path, scheme: Scheme) -> Result<String, Error> {
    let output = run(page, scheme, (1_600, 1_000), &["--virtual-time-budget=10000", "--dump-dom"])?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// Draws a page of `size` pixels to a PNG file. The picture is scaled to 75 %, so that the file is
/// small.
pub(crate) fn picture(page: &Path, size: (u32, u32), file: &Path) -> Result<(), Error> {
    let file = format!("--screenshot={}", file.display());
    run(page, Scheme::Light, size, &[&file, "--hide-scrollbars", SCALE]).map(drop)
}

fn run(
    page: &Path,
    scheme: Scheme,
    (width, height): (u32, u32),
    options: &[&str],
) -> Result<Vec<u8>, Error> {
    let path = page.canonicalize();
    let path = path.map_err(|source| Error::Read { path: page.to_owned(), source })?;
    for name in NAMES {
        let mut command = Command::new(name);
        // Chromium's sandbox does not start as root. The pages need no sandbox, because this
        // project generates them.
        command.args(["--headless", "--no-sandbox", "--disable-gpu"]);
        command.arg(format!("--blink-settings=preferredColorScheme={}", scheme as u8));
        command.arg(format!("--window-size={width},{height}")).args(options);
        command.arg(format!("file://{}", path.display())).stderr(Stdio::null());
        match command.output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Start { command: name.to_owned(), source }),
            Ok(output) if output.status.success() => return Ok(output.stdout),
            Ok(_) => return Err(Error::Failed { command: name.to_owned() }),
        }
    }
    Err(Error::Chromium)
}
