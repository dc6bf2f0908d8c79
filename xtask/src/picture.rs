//! The heat map of a sweep as a picture: the README's, made from the JSON that the sweep has written.

use crate::error::Error;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write as _};

/// Side of a cell, and room around the cells for the axes, in pixels.
const SIDE: usize = 34;
const MARGIN: usize = 64;

/// What the picture shows of a cell.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    send: u64,
    receive: u64,
    /// Bytes per second.
    median: f64,
}

/// Writes the picture of the sweep in the file to standard output.
pub(crate) fn run(path: &str) -> Result<(), Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let not_a_sweep = || Error::NotASweep(path.into());
    let sweep: Value = serde_json::from_str(&text).map_err(|_| not_a_sweep())?;
    let cells = cells(&sweep).filter(|cells| !cells.is_empty()).ok_or_else(not_a_sweep)?;
    io::stdout().write_all(draw(&cells).as_bytes()).map_err(Error::Write)
}

fn cells(sweep: &Value) -> Option<Vec<Cell>> {
    let read = |cell: &Value| {
        let (send, receive) = (cell["send_packets"].as_u64()?, cell["receive_packets"].as_u64()?);
        Some(Cell { send, receive, median: cell["median"].as_f64()? })
    };
    sweep["cells"].as_array()?.iter().map(read).collect()
}

/// A row for each send buffer, the smallest at the bottom; a column for each receive buffer. Dark is
/// slow, light is fast, on a scale of logarithms, because a table spans two orders of magnitude.
fn draw(cells: &[Cell]) -> String {
    let axis = |of: fn(&Cell) -> u64| {
        let mut values: Vec<u64> = cells.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let (rows, columns) = (axis(|cell| cell.send), axis(|cell| cell.receive));
    let logarithms = || cells.iter().map(|cell| cell.median.max(1.0).ln());
    let (low, high) = (logarithms().fold(f64::MAX, f64::min), logarithms().fold(f64::MIN, f64::max));
    let (width, height) = (MARGIN + columns.len() * SIDE + 12, MARGIN + rows.len() * SIDE + 12);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let place = |axis: &[u64], value| axis.iter().position(|&other| other == value).unwrap_or(0);
    let x = |receive| MARGIN + place(&columns, receive) * SIDE;
    let y = |send| 12 + (rows.len() - 1 - place(&rows, send)) * SIDE;
    for cell in cells {
        let shade = if high > low { (cell.median.max(1.0).ln() - low) / (high - low) } else { 1.0 };
        tile(&mut svg, x(cell.receive), y(cell.send), cell, shade);
    }
    for &receive in &columns {
        text(&mut svg, x(receive) + SIDE / 2, height - MARGIN + 16, "", &receive.to_string());
    }
    for &send in &rows {
        text(&mut svg, MARGIN - 14, y(send) + SIDE / 2 + 4, "", &send.to_string());
    }
    text(&mut svg, MARGIN + columns.len() * SIDE / 2, height - 22, "", "receive buffer, packets");
    let (middle, turn) = (12 + rows.len() * SIDE / 2, " transform=\"rotate(-90 20 ");
    text(&mut svg, 20, middle, &format!("{turn}{middle})\""), "send buffer, packets");
    svg.push_str("</svg>\n");
    svg
}

/// One cell: its colour, and its median in MB/s where it can be read.
fn tile(svg: &mut String, x: usize, y: usize, cell: &Cell, shade: f64) {
    let (hue, lightness) = (260.0 - 210.0 * shade, 22.0 + 50.0 * shade);
    let ink = if shade < 0.5 { "white" } else { "black" };
    let megabytes = cell.median / 1_048_576.0;
    let figure = if megabytes < 9.95 { format!("{megabytes:.1}") } else { format!("{megabytes:.0}") };
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"hsl({hue:.0},75%,{lightness:.0}%)\">\
         <title>send {}, receive {}: {figure} MB/s</title></rect>",
        cell.send, cell.receive
    );
    text(svg, x + SIDE / 2, y + SIDE / 2 + 4, &format!(" fill=\"{ink}\""), &figure);
}

fn text(svg: &mut String, x: usize, y: usize, attributes: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{attributes}>{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(text: &str) -> Option<Vec<Cell>> {
        cells(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn every_cell_of_a_sweep_is_drawn_with_its_figure() {
        let cells = sweep(
            r#"{"cells": [{"send_packets": 1, "receive_packets": 2, "median": 1048576.0},
                          {"send_packets": 2, "receive_packets": 2, "median": 104857600.0}]}"#,
        );
        let svg = draw(&cells.unwrap());
        assert!(svg.contains(">1.0<") && svg.contains(">100<"), "{svg}");
        assert!(svg.contains("send 2, receive 2: 100 MB/s"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 3);
    }

    #[test]
    fn what_has_no_cells_is_no_sweep() {
        assert_eq!(sweep("{}"), None);
        assert_eq!(sweep(r#"{"cells": [{"send_packets": 1}]}"#), None);
    }
}
