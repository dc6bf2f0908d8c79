//! Shows a congestion control algorithm that is defined outside linerate. After a loss it reduces
//! its window by an eighth, while NewReno would halve it.
//!
//! The algorithm is an experiment and not suited to the internet, because it takes bandwidth away
//! from other connections on a shared bottleneck.
//!
//! ```sh
//! cargo run -p linerate-tcp --example custom_congestion
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod path;

use linerate_tcp::{CongestionName, Controller, CustomCongestion, FastRecovery, Window};
use linerate_units::{Bytes, Rate};
use path::{TRANSFER, transfer};

/// The name and the constructor of this algorithm, as `Config::congestion` takes them.
const GENTLE: CongestionName = CongestionName::Custom(CustomCongestion {
    name: "gentle",
    new: |window| Box::new(Gentle { window }),
});

#[derive(Clone, Debug)]
struct Gentle {
    window: Window,
}

impl Controller for Gentle {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilRecovered
    }

    fn on_loss(&mut self, flight: u32) {
        self.window.set_threshold((flight - flight / 8).max(2 * self.window.mss()));
    }

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

fn main() {
    for congestion in [CongestionName::NewReno, GENTLE] {
        let (elapsed, retransmitted) = transfer(congestion);
        let goodput = Rate::of(Bytes::new(TRANSFER as u64), elapsed);
        let name = congestion.to_string();
        println!("{name:>8}: {goodput}, {retransmitted} segments retransmitted");
    }
}
