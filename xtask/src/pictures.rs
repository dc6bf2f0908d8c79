//! `cargo xtask pictures`: draws the pictures of the README from real runs on this machine.

use crate::chromium;
use crate::error::Error;
use crate::page;
use crate::workspace::{cargo, root};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder for the sweep and its page.
const FOLDER: &str = "target/pictures";
/// Maximum size of a picture in bytes.
const MOST: u64 = 150_000;
/// Arguments of the diagnosis in a picture: a simulated path of 20 Mb/s and 100 ms with a send
/// buffer of 64 KiB. Because the path is simulated, the diagnosis does not depend on the machine.
const DIAGNOSED: &str = "sim:wan-codel --set one.send_buffer=65536";
/// Width and height of the drawn page, in pixels.
const PAGE: (u32, u32) = (1_000, 1_240);

/// Draws and checks all pictures. Uses the sweep in the folder `sweep`, or makes a new sweep if
/// `sweep` is `None`.
pub(crate) fn draw(sweep: Option<&str>) -> Result<(), Error> {
    let folder = root().join(FOLDER);
    // The folder is emptied, so that a sweep does not find the results of an earlier one. An error
    // is ignored, because the removal fails if the folder does not exist.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    let source = match sweep {
        Some(folder) => format!("report {folder}"),
        None => "sweep --out target/pictures/sweep".to_owned(),
    };
    linerate(&format!(
        "{source} --quiet --html target/pictures/report.html --svg docs/heat-map.svg"
    ))?;
    let html = folder.join("report.html");
    page::check(&html)?;
    let [map, why, report] =
        ["docs/heat-map.svg", "docs/why.svg", "docs/report.png"].map(|name| root().join(name));
    chromium::picture(&html, PAGE, &report)?;
    let command = format!("linerate why --on {DIAGNOSED}");
    let text = linerate(&format!("why --on {DIAGNOSED}"))?;
    fs::write(&why, terminal(&command, &text))
        .map_err(|source| Error::Write { path: why.clone(), source })?;
    [map, why, report].iter().try_for_each(|picture| is_small(picture))
}

/// Runs `linerate` in the root folder with these arguments. Returns its output.
fn linerate(words: &str) -> Result<String, Error> {
    let mut command: Command = cargo();
    command.args(["run", "--quiet", "--release", "--package", "linerate", "--"]);
    command.args(words.split_whitespace()).current_dir(root()).stderr(Stdio::inherit());
    let output = command.output();
    let output =
        output.map_err(|source| Error::Start { command: "cargo run".to_owned(), source })?;
    if !output.status.success() {
        return Err(Error::Failed { command: format!("linerate {words}") });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn is_small(path: &Path) -> Result<(), Error> {
    let file = fs::metadata(path);
    let size = file.map_err(|source| Error::Read { path: path.to_owned(), source })?.len();
    eprintln!("xtask: {} has {size} bytes", path.display());
    if size <= MOST { Ok(()) } else { Err(Error::Picture { path: path.to_owned(), size }) }
}

/// Draws a command and its output as an SVG picture of a terminal.
fn terminal(command: &str, text: &str) -> String {
    const CHARACTER: f64 = 7.83;
    const LINE: usize = 18;
    const MARGIN: usize = 14;
    let first = format!("$ {command}");
    let lines: Vec<&str> = std::iter::once(first.as_str()).chain(text.lines()).collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let columns = u32::try_from(columns).unwrap_or(u32::MAX);
    let width = f64::from(columns) * CHARACTER + 2.0 * 14.0;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"The output of \
         {command}\" viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" \
         height=\"{height}\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" \
         fill=\"#16171b\"/>\n<g font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13\" fill=\"#ececf1\">\n"
    );
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = MARGIN + (index + 1) * LINE - 5;
        // Each line of text gets an explicit width, so that columns align even if the viewer's font
        // is wider or narrower.
        let characters = u32::try_from(line.chars().count()).unwrap_or(u32::MAX);
        let length = f64::from(characters) * CHARACTER;
        let colour = if index == 0 { " fill=\"#8ab8ff\"" } else { "" };
        let line = line.replace('&', "&amp;").replace('<', "&lt;");
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text style=\"white-space: pre\" x=\"{MARGIN}\" y=\"{y}\" \
             textLength=\"{length:.1}\"{colour}>{line}</text>"
        );
    }
    svg + "</g>\n</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_drawn_line_by_line() {
        let svg = terminal("linerate x", "a < b\n\nlast line\n");
        assert_eq!(svg.matches("<text ").count(), 3);
        assert!(svg.contains(">a &lt; b</text>") && svg.contains("y=\"81\""), "{svg}");
    }
}
