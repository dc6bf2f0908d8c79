//! Tests of the table of goodput by round-trip time, loss rate, buffer size and congestion control.
//! They compare the whole table with the reviewed copy in the repository, and some cells with
//! expected values.

use linerate_tcp::{Config, CongestionName};
use linerate_testkit::loss_grid::{Cell, LossGrid};
use linerate_units::{Bytes, Duration};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static GRID: LazyLock<LossGrid> = LazyLock::new(LossGrid::measure);

#[test]
fn the_grid_equals_the_reviewed_copy() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loss-grid.txt");
    let reviewed = fs::read_to_string(path).expect("docs/loss-grid.txt is kept");
    let measured = GRID.to_string();
    assert!(
        measured == reviewed,
        "run `cargo xtask grid`, and review the difference of docs/loss-grid.txt:\n{measured}"
    );
}

/// Published goodput of smoltcp (the snapshot of its `netsim` test) for buffers of 32 KiB on a path
/// with a round-trip time of 100 ms and no bandwidth limit. Each pair is the loss in packets per
/// thousand, and the goodput in bytes per second.
///
/// The figure of 219,671 B/s at 1 % loss is omitted, because smoltcp never reduces its window
/// there. No window that is reduced after each loss can reach it: by RFC 5681 it has 1.22/√p
/// segments on average (RFC 3649 §2). This is 177 kB/s here. CUBIC is as conservative as Reno on
/// such paths (RFC 9438 §4.3). BBR does not respond to single losses, and exceeds the omitted
/// figure.
const PUBLISHED: [(u32, u64); 3] = [(0, 322_945), (50, 76_626), (100, 37_775)];

#[test]
fn small_buffers_on_a_long_path_exceed_smoltcp() {
    for (loss, published) in PUBLISHED {
        let (round_trip, congestion) = (Duration::from_millis(100), Config::modern().congestion);
        let cell = Cell { round_trip, loss, buffer: Bytes::new(32 << 10), congestion };
        let goodput = GRID.figures(&cell).expect("a cell of the grid").goodput;
        assert!(goodput > published, "{congestion}, {loss} ‰ lost: {goodput} of {published} B/s");
    }
}

#[test]
fn bbr_at_one_percent_loss_exceeds_a_fixed_window() {
    let (round_trip, congestion) = (Duration::from_millis(100), CongestionName::Bbr);
    let goodput =
        Cell { round_trip, loss: 10, buffer: Bytes::new(32 << 10), congestion }.median().goodput;
    assert!(goodput > 219_671, "{goodput} B/s");
}
