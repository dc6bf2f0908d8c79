//! Prints the table of goodput over loss, in the form of `docs/loss-grid.txt`.

#![allow(clippy::print_stdout, reason = "it prints the grid")]

use linerate_testkit::loss_grid::LossGrid;

fn main() {
    print!("{}", LossGrid::measure());
}
