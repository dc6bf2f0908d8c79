//! `cargo xtask page`: checks a page that `linerate report --html` wrote, in headless Chromium.
//!
//! Three frames of different widths show the page. A script in each frame checks layout, requests,
//! roles and names, contrast, arrow keys and layers. All checks are made in both colour schemes.

use crate::chromium::{self, Scheme};
use crate::error::Error;
use serde_json::Value;
use std::fs;
use std::path::Path;

const SCRIPT: &str = include_str!("page_check.js");
/// Widths of the frames in pixels: a telephone, a tablet and a large window.
const WIDTHS: [u32; 3] = [360, 800, 1_400];

/// Checks a page, and prints its problems.
pub(crate) fn check(page: &Path) -> Result<(), Error> {
    let text =
        fs::read_to_string(page).map_err(|source| Error::Read { path: page.to_owned(), source })?;
    let (copy, frames) = (page.with_extension("checked.html"), page.with_extension("frames.html"));
    let name = copy.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let script = format!("<script>\n{SCRIPT}</script>\n</body>");
    let result = write(&copy, &text.replace("</body>", &script))
        .and_then(|()| write(&frames, &frames_of(&name)))
        .and_then(|()| count_problems(&frames));
    // The temporary files are removed. If that fails, the error is ignored, because the next check
    // overwrites the files.
    let _ = fs::remove_file(&copy);
    let _ = fs::remove_file(&frames);
    match result? {
        0 => Ok(()),
        count => Err(Error::Page { count }),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Returns a page that shows `page` in a frame of each width, and collects the results of the
/// checks.
fn frames_of(page: &str) -> String {
    let frame = |width| {
        format!("<iframe src=\"{page}\" style=\"width:{width}px;height:900px;border:0\"></iframe>")
    };
    let frames: String = WIDTHS.map(frame).concat();
    format!(
        "<!DOCTYPE html><body><script>addEventListener(\"message\", (event) => {{\n  const result \
         = document.createElement(\"pre\");\n  result.textContent = \
         encodeURIComponent(JSON.stringify(event.data));\n  \
         document.body.append(result);\n}});</script>{frames}</body>"
    )
}

/// Prints the results of all frames in both colour schemes, and returns the number of problems. A
/// frame that has no result counts as one problem.
fn count_problems(frames: &Path) -> Result<usize, Error> {
    let mut count = 0;
    for scheme in [Scheme::Light, Scheme::Dark] {
        let content = chromium::content(frames, scheme)?;
        let results = results(&content);
        for result in &results {
            let problems = result["problems"].as_array().map_or(&[][..], Vec::as_slice);
            let facts = result["facts"].as_str().unwrap_or_default();
            eprintln!("xtask: page: {facts}: {} problems", problems.len());
            for problem in problems {
                eprintln!("  {}", problem.as_str().unwrap_or_default());
            }
            count += problems.len();
        }
        count += WIDTHS.len().saturating_sub(results.len());
    }
    Ok(count)
}

fn results(content: &str) -> Vec<Value> {
    let texts = content.split("<pre>").skip(1).filter_map(|text| text.split("</pre>").next());
    texts.filter_map(|text| serde_json::from_str(&decoded(text)).ok()).collect()
}

/// Decodes the percent-encoding of a text in a URL.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_from_the_content_of_the_frames() {
        let content = "<body><pre>%7B%22facts%22%3A%22360%20%E2%89%A4%22%7D</pre><pre>x</pre>";
        let results = results(content);
        assert_eq!(results.len(), 1);
        assert_eq!(results[0]["facts"], "360 ≤");
    }
}
