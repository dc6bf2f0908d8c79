//! Prints the grid of goodput over loss, as `docs/loss-grid.txt` keeps it.

#![allow(clippy::print_stdout, reason = "it prints the grid")]

use linerate_testkit::loss_grid::LossGrid;

fn main() {
    print!("{}", LossGrid::measure());
}
