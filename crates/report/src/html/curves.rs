//! The page's section of curves: medians of cells and their 95 % intervals, plotted over the buffer
//! size.

use super::chart::{Chart, LARGE, Point};
use super::elements::{legend, paragraph};
use crate::report::Report;
use crate::unit::Unit;
use linerate_evidence::stats::as_f64;
use linerate_evidence::{BufferSize, notation};
use linerate_verdict::CellSummary;

/// Returns the HTML content of the section of curves. The first curve shows the cells with equal
/// buffers. In the second and the third curve, only the buffer of one end varies, and the other end
/// always has its largest buffer.
pub(crate) fn content(report: &Report<'_>) -> String {
    let table = &report.table;
    let (Some(&send), Some(&receive)) = (table.sends().last(), table.receives().last()) else {
        return String::new();
    };
    let row: Vec<_> = table.receives().iter().filter_map(|&size| table.get(send, size)).collect();
    let column: Vec<_> =
        table.sends().iter().filter_map(|&size| table.get(size, receive)).collect();
    let mut curves = vec![("c0", "both buffers equal".to_owned(), table.diagonal())];
    if !report.design.diagonal {
        let fixed = |size| notation::buffer(size);
        curves.push(("c1", format!("receive buffer varies, send buffer {}", fixed(send)), row));
        curves.push((
            "c2",
            format!("send buffer varies, receive buffer {}", fixed(receive)),
            column,
        ));
    }
    curves.retain(|(_, _, cells)| cells.len() > 1);
    if curves.is_empty() {
        return paragraph("No line of cells has two complete cells.");
    }
    let sizes = report.sizes();
    let unit = Unit::up_to(report.best());
    let highest = curves.iter().flat_map(|(_, _, cells)| cells).map(|cell| cell.interval.high);
    let mut chart = Chart::new(
        LARGE,
        [0.0, as_x(sizes.len() - 1)],
        [0.0, highest.fold(0.0, f64::max) / unit.bytes],
    );
    chart.y_axis(&format!("median, {}", unit.short), notation::thousands);
    let names: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let packets = sizes.iter().all(|size| size.packets().is_some());
    let title = if packets { "the buffer that varies, packets" } else { "the buffer that varies" };
    chart.x_names(title, &names);
    for (class, _, cells) in &curves {
        let varying = |cell: &CellSummary<'_>| match *class {
            "c2" => cell.cell.send,
            _ => cell.cell.receive,
        };
        let points: Vec<Point> =
            cells.iter().filter_map(|cell| point(cell, varying(cell), &sizes, unit)).collect();
        chart.curve(class, &points);
    }
    let entries: Vec<_> = curves.iter().map(|(class, name, _)| (*class, name.clone())).collect();
    format!(
        "{}{}{}",
        paragraph(
            "Each mark is the median of a cell's runs, the band its 95 % interval. All figures are \
             in the table of all cells."
        ),
        legend(&entries),
        chart.image("Throughput by buffer size, with 95 % intervals")
    )
}

/// Returns the point of `cell` on a curve. `varying` is the buffer size that distinguishes the cell
/// from the other cells of the curve. The x value is the index of that size in `sizes`; returns
/// `None` if `sizes` does not contain it.
fn point(
    cell: &CellSummary<'_>,
    varying: BufferSize,
    sizes: &[BufferSize],
    unit: Unit,
) -> Option<Point> {
    let index = sizes.iter().position(|&size| size == varying)?;
    let figure = |rate| unit.figure(rate);
    Some(Point {
        x: as_x(index),
        y: cell.median() / unit.bytes,
        low: cell.interval.low / unit.bytes,
        high: cell.interval.high / unit.bytes,
        told: format!(
            "{}: {} {} ({}–{})",
            notation::cell(cell.cell),
            figure(cell.median()),
            unit.short,
            figure(cell.interval.low),
            figure(cell.interval.high)
        ),
    })
}

/// Returns the x value of the buffer size with this index in the list of sizes.
fn as_x(index: usize) -> f64 {
    as_f64(index as u64)
}
