//! Tests of complete reports of sweeps with invented rates.

use crate::heat_map;
use crate::paint::Style;
use crate::report::Report;
use linerate_evidence::sample_data::{noise, records, square_design, start};
use linerate_evidence::{
    BufferList, Cell, Design, FastPath, LineRate, Maximum, RunRecord, Start, names,
};
use std::collections::BTreeMap;

/// Returns the invented rate of a run in bytes per second, for a sweep with buffers from 1 to 8
/// packets. The rates form a ridge along the diagonal, with a notch at 3 packets. The cell with 8
/// packets of send buffer and 1 packet of receive buffer is a hundred times too slow.
fn rate(cell: Cell, repeat: u32) -> f64 {
    let column = [337.0, 575.0, 600.0, 718.0, 720.0, 719.0, 718.0, 718.0];
    let (send, receive) = (cell.send.packets().unwrap(), cell.receive.packets().unwrap());
    let apart = f64::from(send.abs_diff(receive));
    let slow = if (send, receive) == (8, 1) { 0.01 } else { 1.0 };
    column[send.min(receive) as usize - 1] * 1_024.0 / (1.0 + 0.05 * apart)
        * slow
        * noise(cell, repeat, 0.003)
}

fn runs(design: &Design) -> Vec<RunRecord> {
    let mut runs = records(design, rate);
    for run in &mut runs {
        let slow = (run.send_buffer.packets, run.receive_buffer.packets) == (Some(8), Some(1));
        run.counters.receiver.set(names::DELAYED_ACK_TIMEOUTS, if slow { 5_793 } else { 0 });
        run.counters.sender.set(names::RETRANSMISSION_TIMEOUTS, 0);
        run.verified = Some(true);
        let path = |hits| FastPath {
            hits,
            misses: BTreeMap::from([("closing".to_owned(), 2), ("syn".to_owned(), 1)]),
        };
        run.counters.sender.fast_path = Some(path(2_896));
        run.counters.receiver.fast_path = Some(path(5_793));
    }
    runs
}

/// Returns the facts of a sweep on a half-duplex Ethernet of 10 Mb/s, like that of the experiment
/// of 1988.
fn ethernet() -> Start {
    let mut start = start();
    let line_rate = LineRate { bits_per_second: 10_000_000, source: "IEEE 802.3".to_owned() };
    let bench = &mut start.facts.bench;
    bench.framing.half_duplex = true;
    start.maximum = Maximum::of_line_rate(line_rate, &bench.framing, bench.segment_payload);
    start
}

#[test]
fn a_report_on_paper() {
    let design = square_design(8);
    insta::assert_snapshot!(Report::new(&design, &ethernet(), &runs(&design)).text(Style::PLAIN));
}

#[test]
fn a_report_in_colours() {
    let design = square_design(3);
    let style = Style { colour: true, width: 80 };
    insta::assert_snapshot!(Report::new(&design, &start(), &runs(&design)).text(style));
}

#[test]
fn a_report_on_a_narrow_terminal() {
    let design = square_design(17);
    let runs = records(&design, |cell, repeat| {
        1e9 * f64::from(cell.send.min(cell.receive).packets().unwrap()) * noise(cell, repeat, 0.02)
    });
    let start = start();
    let report = Report::new(&design, &start, &runs);
    insta::assert_snapshot!(heat_map::text(&report, Style { colour: false, width: 30 }));
    insta::assert_snapshot!(heat_map::text(&report, Style { colour: false, width: 16 }));
}

#[test]
fn a_report_of_bytes_on_the_diagonal() {
    let mut design = Design::of_1988();
    design.send_buffers = "16KiB..64KiB/16KiB".parse().unwrap();
    design.receive_buffers = design.send_buffers.clone();
    design.diagonal = true;
    design.repeat = 6.try_into().unwrap();
    let runs = records(&design, |cell, repeat| {
        cell.send.bytes(1) as f64 * 1e5 * noise(cell, repeat, 0.01)
    });
    insta::assert_snapshot!(Report::new(&design, &start(), &runs).text(Style::PLAIN));
}

#[test]
fn a_picture_has_a_rectangle_for_each_cell() {
    let design = square_design(3);
    let svg = Report::new(&design, &start(), &runs(&design)).picture();
    assert_eq!(svg.matches("<title>").count(), 9);
    assert!(svg.contains("<title>3 × 3 packets: 600 KB/s (599 … 601)</title>"), "{svg}");
    assert!(svg.contains("Per cent of the best cell, 600 KB/s") && svg.ends_with("</svg>\n"));
}

/// Returns the numeric values of an attribute in an SVG text, in the order of the text.
fn numbers(svg: &str, name: &str) -> Vec<usize> {
    let name = format!(" {name}=\"");
    let values = svg.split(&name).skip(1);
    values.map(|text| text[..text.find('"').unwrap()].parse().unwrap()).collect()
}

#[test]
fn a_picture_has_room_for_the_labels_of_any_buffers() {
    let mut design = square_design(3);
    design.send_buffers = "1023KiB,1024KiB,1000000KiB".parse().unwrap();
    design.receive_buffers = "1000001B,1048577B".parse().unwrap();
    let runs = records(&design, |cell, repeat| 1e9 * noise(cell, repeat, 0.1));
    let svg = Report::new(&design, &start(), &runs).picture();
    // Every row label ends at this x position, left of the map. A character is 7 pixels wide. A
    // label is cut off at the left edge of the picture if its width exceeds this position.
    let left = svg.split("text-anchor=\"end\"").next().unwrap();
    let place = *numbers(left, "x").last().unwrap();
    let names =
        |list: &BufferList| list.sizes().iter().map(ToString::to_string).collect::<Vec<_>>();
    for name in names(&design.send_buffers) {
        assert!(place >= name.chars().count() * 7 && svg.contains(&format!(">{name}<")), "{name}");
    }
    for name in names(&design.receive_buffers) {
        assert!(svg.contains(&format!("rotate(-90)\" fill=\"#1a1a1a\">{name}<")), "{name}");
    }
    for part in ["6 cells × 4 runs of 8 MiB", "begun 1988-10-20T02:00:00Z", "Not conclusive"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let height = numbers(&svg, "height")[0];
    assert!(numbers(&svg, "y").iter().all(|&y| y < height));
    assert_eq!(svg.matches("h0").count(), runs.len(), "a mark for each run");
}

#[test]
fn runs_with_wrong_bytes_are_counted() {
    let design = square_design(2);
    let mut wrong = runs(&design);
    wrong[3].verified = Some(false);
    wrong[4].verified = None;
    let start = start();
    assert_eq!(Report::new(&design, &start, &wrong).wrong_runs(), 1);
}

#[test]
fn a_sweep_with_rate_zero_is_reported_with_finite_figures() {
    let design = square_design(3);
    let mut runs = runs(&design);
    for run in &mut runs {
        (run.bytes, run.bytes_per_second, run.wire_bits_per_second) = (0, 0.0, 0.0);
    }
    let start = start();
    let report = Report::new(&design, &start, &runs);
    let texts = [Style::PLAIN, Style { colour: true, width: 80 }].map(|style| report.text(style));
    for text in texts.into_iter().chain([report.json(&()), report.csv(), report.picture()]) {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        assert!(words.all(|word| !["NaN", "inf"].contains(&word)), "{text}");
    }
}

#[test]
fn the_most_frequent_misses_are_named_and_the_others_summed() {
    let design = square_design(1);
    let mut runs = records(&design, rate);
    let misses =
        [("a", 9), ("b", 8), ("c", 7), ("d", 6), ("e", 5), ("f", 4), ("g", 2), ("h", 1), ("i", 0)];
    let misses = misses.map(|(reason, count)| (reason.to_owned(), count)).into();
    runs[0].counters.sender.fast_path = Some(FastPath { hits: 58, misses });
    runs[0].counters.receiver.fast_path =
        Some(FastPath { hits: 1, misses: [("a".to_owned(), 0)].into() });
    let text = Report::new(&design, &start(), &runs).text(Style::PLAIN);
    let sender =
        "sender: 58.00 % of 100 segments; misses: 9 a, 8 b, 7 c, 6 d, 5 e, 4 f, 3 others\n";
    assert!(
        text.contains(sender) && text.contains("receiver: 100.00 % of 1 segments; misses: none\n"),
        "{text}"
    );
}

#[test]
fn the_document_has_the_documented_names() {
    let design = square_design(2);
    let json = Report::new(&design, &ethernet(), &runs(&design))
        .json(&serde_json::json!({ "on": "stack" }));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let keys =
        |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        keys(&document),
        ["cells", "facts", "fast_path", "findings", "maximum", "plan", "runs"]
    );
    for name in [
        "order",
        "repeat",
        "bytes",
        "seconds",
        "bytes_per_second",
        "wire_bits_per_second",
        "verified",
        "counters",
    ] {
        assert!(document["runs"][0].get(name).is_some(), "{name}");
    }
    for buffer in ["send_buffer", "receive_buffer"] {
        assert_eq!(
            keys(&document["runs"][0][buffer]),
            ["granted_bytes", "packets", "requested_bytes"]
        );
    }
    for name in ["send_packets", "receive_packets", "median", "low", "high", "percent_of_maximum"] {
        assert!(document["cells"][0].get(name).is_some(), "{name}");
    }
    for name in ["machine", "kernel", "cpu", "versions", "options"] {
        assert!(document["facts"].get(name).is_some(), "{name}");
    }
    insta::assert_snapshot!(json);
}

#[test]
fn predicted_cells_are_told_from_measured_ones() {
    let budget = Some(linerate_units::Duration::from_secs(60));
    let design = Design { budget, ..square_design(8) };
    let runs = records(&design, |cell, repeat| {
        let smaller = cell.send.min(cell.receive).packets().unwrap();
        1e6 * f64::from(smaller.min(5)) * noise(cell, repeat, 0.01)
    });
    let start = start();
    let report = Report::new(&design, &start, &runs[..100]);
    let measured = report.table().iter().count();
    let predicted = 64 - measured;
    assert!(predicted > 5, "{predicted}");
    let text = report.text(Style::PLAIN);
    let told = format!("{measured} of 64 cells were measured within the budget of 60.00 s");
    assert!(text.contains(&told), "{text}");
    assert!(!text.contains("Conclusive"), "cells with one run show no precision: {text}");
    let map: Vec<&str> = text.lines().filter(|line| line.contains('~')).collect();
    assert!(map.last().unwrap().contains("predicted, not measured"), "{text}");
    let html = report.html(&serde_json::json!({ "on": "kernel" }));
    assert_eq!(html.matches(" predicted\" title=").count(), predicted);
    assert!(html.contains("were not measured") && !html.contains("Partial:"));
    let svg = report.picture();
    assert_eq!(svg.matches("stroke-dasharray").count(), predicted);
    let json: serde_json::Value =
        serde_json::from_str(&report.json(&serde_json::json!({}))).unwrap();
    let cells = json["predictions"]["cells"].as_array().unwrap();
    assert_eq!((cells.len(), json["cells"].as_array().unwrap().len()), (predicted, measured));
    assert!(cells[0]["low"].as_f64() < cells[0]["predicted"].as_f64(), "{}", cells[0]);
}
