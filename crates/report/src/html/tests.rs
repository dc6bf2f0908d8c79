//! Tests of the HTML page of sweeps with invented rates.

use crate::report::Report;
use linerate_evidence::sample_data::{noise, records, square_design, start};
use linerate_evidence::{Cell, Design, RunRecord, names};

fn runs(design: &Design) -> Vec<RunRecord> {
    let rate = |cell: Cell, repeat| {
        1e8 * f64::from(cell.send.min(cell.receive).packets().unwrap()) * noise(cell, repeat, 0.02)
    };
    let mut runs = records(design, rate);
    for run in &mut runs {
        run.counters.sender.set(names::RETRANSMITTED_SEGMENTS, u64::from(run.order % 3));
        run.counters.receiver.set(names::BAD_CHECKSUMS, 0);
    }
    runs
}

fn page(design: &Design, runs: &[RunRecord]) -> String {
    Report::new(design, &start(), runs).html(&serde_json::json!({ "on": "stack", "peer": null }))
}

/// Asserts that elements are closed in the reverse order in which they were opened.
fn is_well_formed(page: &str) {
    const VOID: [&str; 4] = ["meta", "link", "input", "!DOCTYPE"];
    let (mut open, mut rest) = (Vec::new(), page);
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        let end = tag.find('>').unwrap();
        let (tag, after) = (&tag[..end], &tag[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{}", &tag);
        } else if !tag.ends_with('/') {
            let name = tag.split_whitespace().next().unwrap();
            if name == "script" || name == "style" {
                rest = &after[after.find(&format!("</{name}>")).unwrap()..];
            }
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn a_page_has_all_sections_and_asks_for_nothing() {
    let design = square_design(3);
    let page = page(&design, &runs(&design));
    is_well_formed(&page);
    for part in [
        "What it means",
        "<table class=\"heat\"",
        "Throughput by buffer size, with 95 % intervals",
        "Rates of all runs in the order",
        "retransmitted segments",
        "Example CPU",
        "git checkout 0123456789ab\ncargo build --release\nlinerate sweep\n",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("Partial:") && page.matches("<h1").count() == 1);
    assert_eq!(page.matches("<td class=\"r").count(), 9);
    // A reference to a resource outside the file would contain one of these texts.
    for reference in ["src=", "href=\"h", "url(", "@import", "fetch(", "//"] {
        let text = page.replace("<!DOCTYPE html>", "");
        assert!(!text.contains(reference), "{reference}");
    }
}

#[test]
fn a_page_of_any_number_of_runs_is_well_formed_and_finite() {
    let design = square_design(2);
    let all = runs(&design);
    for count in 0..=all.len() {
        let page = page(&design, &all[..count]);
        is_well_formed(&page);
        let mut words = page.split(|c: char| !c.is_alphanumeric());
        assert!(words.all(|word| !["NaN", "inf"].contains(&word)), "{count}");
        let note = format!("Partial: {count} of {} runs are complete.", all.len());
        assert_eq!(page.contains(&note), count < all.len(), "{count}");
    }
}

#[test]
fn text_from_outside_is_escaped() {
    let design = square_design(2);
    let mut start = start();
    start.facts.bench.description = "<script>alert(1)</script>".to_owned();
    start.facts.cpu.model = "A&B \"<i>\"".to_owned();
    start.facts.options = vec!["linerate".to_owned(), "</code><script>".to_owned()];
    let runs = runs(&design);
    let page = Report::new(&design, &start, &runs).html(&serde_json::json!({ "<b>": "<u>" }));
    is_well_formed(&page);
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!["<i>", "<b>\"", "<u>"].iter().any(|tag| page.contains(tag)), "{page}");
}

/// Returns the relative luminance of a colour like `#1a1a1a`, from 0 to 1 (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

/// Returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2).
fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

/// Returns the two values of a custom property in the style sheet: for the light scheme and for the
/// dark scheme.
fn property(name: &str) -> Vec<&'static str> {
    let name = format!("--{name}: ");
    let values = super::STYLE.split(&name).skip(1);
    values.map(|text| &text[..7]).collect()
}

#[test]
fn text_has_a_contrast_of_4_5_and_lines_of_3() {
    let pages = property("page");
    assert_eq!(pages.len(), 2, "a light and a dark scheme");
    for (scheme, page) in pages.iter().enumerate() {
        for (name, least) in
            [("ink", 4.5), ("muted", 4.5), ("link", 4.5), ("c0", 3.0), ("c1", 3.0), ("c2", 3.0)]
        {
            let found = contrast(property(name)[scheme], page);
            assert!(found >= least, "--{name} on {page}: {found:.2}");
        }
    }
    for shade in 0..10 {
        let background = super::STYLE.split(&format!(".r{shade} {{ background: ")).nth(1).unwrap();
        let ink = if shade < 5 { "#ffffff" } else { "#111111" };
        let found = contrast(&background[..7], ink);
        assert!(found >= 4.5, "shade {shade}: {found:.2}");
    }
}
