//! Congestion control, which decides how much data may be in flight (RFC 5681).
//!
//! `send/loss.rs` detects losses. A controller decides how they change the congestion window.

mod bbr;
mod controller;
mod cubic;
mod curve;
mod custom;
mod fixed;
mod hystart;
mod new_reno;
mod reno;
mod tahoe;
mod window;

use crate::compact::pack::{Pack, Packer, Unpacker, packed_enum};
use bbr::Bbr;
pub use controller::{Acknowledged, Controller, FastRecovery, Lost, RateSample};
use cubic::Cubic;
use custom::Custom;
pub use custom::CustomCongestion;
use fixed::Fixed;
use new_reno::NewReno;
use reno::Reno;
use tahoe::Tahoe;
pub use window::Window;

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;
use linerate_units::{Duration, Rate};

/// Declares [`CongestionName`]. The list of all variants and the names are generated from the same
/// declaration, so that none can be missing.
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// The name of a congestion control algorithm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CongestionName {
            $($(#[$doc])* $name,)*
            /// A constant window of this number of segments, for experiments.
            Fixed(u16),
            /// An algorithm that is defined in another crate.
            Custom(CustomCongestion),
        }

        impl CongestionName {
            /// All built-in algorithms, in historical order.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];

            const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Fixed(_) => "fixed",
                    Self::Custom(custom) => custom.name,
                }
            }
        }
    };
}

names! {
    /// 4.3BSD Tahoe (1988): after every loss, slow start from one segment.
    Tahoe = "tahoe",
    /// 4.3BSD Reno (1990): fast recovery until the first acknowledgement of new data.
    Reno = "reno",
    /// NewReno (RFC 6582): fast recovery until all data that was in flight at the loss is
    /// acknowledged.
    NewReno = "new-reno",
    /// CUBIC (RFC 9438): after a loss, the window returns to its former size along a cubic curve.
    /// HyStart++ (RFC 9406) ends the first slow start.
    Cubic = "cubic",
    /// BBR (draft-ietf-ccwg-bbr-06): paces at the measured bandwidth of the path. BBR requires
    /// SACK; without it, the default algorithm is used.
    ///
    /// Losses reduce the rate even if congestion did not cause them. After a round trip with a
    /// loss, the rate is limited until the next bandwidth probe (§5.5.10.3). A probe ends when it
    /// loses more than 2 % of the data (§5.5.10.2). On a path of 10 ms, 1 % random loss costs 6 %
    /// of the rate, and 5 % costs more than half. BBRv1, the `bbr` of Linux 6.18, ignores single
    /// losses. Random losses of more than 2 % should rather be repaired below TCP, by
    /// retransmission on the link or by forward error correction.
    Bbr = "bbr",
}

impl fmt::Display for CongestionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Self::Fixed(segments) = self { write!(f, ":{segments}") } else { Ok(()) }
    }
}

/// The error of a text that is not the name of a congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCongestion;

impl fmt::Display for UnknownCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no congestion control of this name: use ")?;
        for name in CongestionName::ALL {
            write!(f, "{name}, ")?;
        }
        f.write_str("or fixed:SEGMENTS")
    }
}

impl core::error::Error for UnknownCongestion {}

impl FromStr for CongestionName {
    type Err = UnknownCongestion;
    fn from_str(text: &str) -> Result<Self, UnknownCongestion> {
        if let Some(segments) = text.strip_prefix("fixed:") {
            let segments = segments.parse().ok().filter(|&segments| segments > 0);
            return segments.map(Self::Fixed).ok_or(UnknownCongestion);
        }
        Self::ALL.into_iter().find(|name| name.name() == text).ok_or(UnknownCongestion)
    }
}

/// The congestion controller of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Congestion {
    Tahoe(Tahoe),
    Reno(Reno),
    NewReno(NewReno),
    Cubic(Cubic),
    Bbr(Box<Bbr>),
    Fixed(Fixed),
    Custom(Custom),
}

/// The variant of a [`Congestion`], as stored in a compact connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cubic,
    Bbr,
    NewReno,
    Reno,
    Tahoe,
    Fixed,
}

packed_enum!(Kind { Cubic, Bbr, NewReno, Reno, Tahoe, Fixed });

// The matches in `pack` and `unpack` name every variant, so the compiler reports a controller that
// is missing from them.
impl Pack for Congestion {
    fn pack(&self, into: &mut Packer<'_>) {
        match self {
            Self::Cubic(cubic) => (Kind::Cubic.pack(into), cubic.pack(into)),
            Self::Bbr(bbr) => (Kind::Bbr.pack(into), bbr.pack(into)),
            Self::NewReno(new_reno) => (Kind::NewReno.pack(into), new_reno.pack(into)),
            Self::Reno(reno) => (Kind::Reno.pack(into), reno.pack(into)),
            Self::Tahoe(tahoe) => (Kind::Tahoe.pack(into), tahoe.pack(into)),
            Self::Fixed(fixed) => (Kind::Fixed.pack(into), fixed.pack(into)),
            // The state of a custom controller is unknown here, so a connection with such a
            // controller cannot be compacted.
            Self::Custom(_) => (into.expect(false), ()),
        };
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        match Kind::unpack(from) {
            Kind::Cubic => Self::Cubic(Pack::unpack(from)),
            Kind::Bbr => Self::Bbr(Pack::unpack(from)),
            Kind::NewReno => Self::NewReno(Pack::unpack(from)),
            Kind::Reno => Self::Reno(Pack::unpack(from)),
            Kind::Tahoe => Self::Tahoe(Pack::unpack(from)),
            Kind::Fixed => Self::Fixed(Pack::unpack(from)),
        }
    }
}

impl Congestion {
    /// Creates the state for the time before the handshake has selected an algorithm. Only its
    /// window is used.
    #[inline]
    pub(crate) const fn before_handshake(window: Window) -> Self {
        Self::NewReno(NewReno::new(window))
    }

    /// Creates a controller with an initial window of `initial_segments` segments of `mss` bytes.
    /// `paced` is true if output is paced even if the controller does not request it. Random
    /// decisions of the controller depend on `seed`.
    #[inline(always)]
    pub(crate) fn new(
        name: CongestionName,
        mss: u32,
        initial_segments: u32,
        paced: bool,
        seed: u64,
    ) -> Self {
        let window = Window::new(mss, initial_segments);
        match name {
            CongestionName::Tahoe => Self::Tahoe(Tahoe::new(window)),
            CongestionName::Reno => Self::Reno(Reno::new(window)),
            CongestionName::NewReno => Self::NewReno(NewReno::new(window)),
            CongestionName::Cubic => Self::Cubic(Cubic::new(window, paced)),
            CongestionName::Bbr => Self::Bbr(Box::new(Bbr::new(window, seed))),
            CongestionName::Fixed(segments) => Self::Fixed(Fixed::new(window, u32::from(segments))),
            CongestionName::Custom(custom) => Self::Custom(Custom::new(custom, window)),
        }
    }

    /// Returns the controller as a trait object, for calls by dynamic dispatch.
    pub(crate) fn controller(&mut self) -> &mut dyn Controller {
        match self {
            Self::Tahoe(tahoe) => tahoe,
            Self::Reno(reno) => reno,
            Self::NewReno(new_reno) => new_reno,
            Self::Cubic(cubic) => cubic,
            Self::Bbr(bbr) => bbr.as_mut(),
            Self::Fixed(fixed) => fixed,
            Self::Custom(custom) => custom.controller_mut(),
        }
    }

    /// Processes an acknowledgement of new data outside recovery. `limited` is true if the sender
    /// was cwnd-limited.
    #[inline]
    pub(crate) fn on_progress(&mut self, ack: &Acknowledged, limited: bool) {
        match self {
            // CUBIC, the default, is called without dynamic dispatch. If the sender is not
            // cwnd-limited, CUBIC has little to do, so the call is inlined here. A cwnd-limited
            // sender calls a method that is not inlined.
            Self::Cubic(cubic) if !limited => tell_progress(cubic, ack, false),
            _ => self.tell_any_progress(*ack, limited),
        }
    }

    /// Passes an acknowledgement to a controller of any kind, by dynamic dispatch. `ack` is passed
    /// by value, so that the fast path need not store it in memory.
    #[inline(never)]
    fn tell_any_progress(&mut self, ack: Acknowledged, limited: bool) {
        tell_progress(self.controller(), &ack, limited);
    }

    /// Handles the end of an idle period, in which nothing was in flight for the time `idle`.
    #[inline]
    pub(crate) fn on_idle(&mut self, idle: Duration) {
        match self {
            Self::Cubic(cubic) => cubic.on_idle(idle),
            other => other.controller().on_idle(idle),
        }
    }

    /// Returns the pacing rate that the controller requests, if any.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Bbr(bbr) => Some(bbr.pacing_rate()),
            Self::Custom(custom) => custom.controller().pacing_rate(),
            Self::Tahoe(_) | Self::Reno(_) | Self::NewReno(_) | Self::Cubic(_) | Self::Fixed(_) => {
                None
            }
        }
    }

    /// Undoes the response to a spurious loss. A controller that governs recovery does this itself.
    /// Any other controller is replaced by `before`, its state before the loss, unless its window
    /// is by now larger than that of `before` (RFC 9438 §4.9.2).
    pub(crate) fn restore(&mut self, before: Self) {
        if self.controller().governs_recovery() {
            self.controller().on_spurious_loss();
        } else if self.window().cwnd() <= before.window().cwnd() {
            *self = before;
        }
    }

    /// Returns the congestion window, which contains CWND and SSTHRESH.
    #[inline]
    pub(crate) fn window(&self) -> &Window {
        // CUBIC, the default, is called without dynamic dispatch.
        if let Self::Cubic(cubic) = self { cubic.window() } else { self.other_window() }
    }

    fn other_window(&self) -> &Window {
        match self {
            Self::Tahoe(tahoe) => tahoe.window(),
            Self::Reno(reno) => reno.window(),
            Self::NewReno(new_reno) => new_reno.window(),
            Self::Cubic(cubic) => cubic.window(),
            Self::Bbr(bbr) => bbr.window(),
            Self::Fixed(fixed) => fixed.window(),
            Self::Custom(custom) => custom.controller().window(),
        }
    }
}

#[inline(always)]
fn tell_progress(controller: &mut (impl Controller + ?Sized), ack: &Acknowledged, limited: bool) {
    controller.on_every_acknowledgement(ack);
    controller.on_progress(ack, limited);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use linerate_units::Instant;
    use linerate_wire::SeqNum;

    const CUSTOM: CustomCongestion =
        CustomCongestion { name: "custom", new: |window| Box::new(NewReno::new(window)) };

    #[test]
    fn a_custom_control_governs_the_window() {
        let name = CongestionName::Custom(CUSTOM);
        let mut custom = Congestion::new(name, 1_000, 10, false, 0);
        let mut new_reno = Congestion::new(CongestionName::NewReno, 1_000, 10, false, 0);
        for congestion in [&mut custom, &mut new_reno] {
            congestion.controller().on_timeout(10_000);
            acknowledge(congestion, 1_000);
        }
        assert_eq!(custom.window(), new_reno.window());
        assert_eq!(custom.clone(), custom);
        assert_eq!(name.to_string(), "custom");
    }

    #[test]
    fn a_connection_with_a_custom_control_has_no_compact_form() {
        let congestion = Congestion::new(CongestionName::Custom(CUSTOM), 1_000, 10, false, 0);
        let config = crate::Config::modern().into();
        let mut packer = Packer::new(&config);
        congestion.pack(&mut packer);
        assert!(packer.finish().is_none());
    }

    fn acknowledge(congestion: &mut Congestion, bytes: u32) {
        let number = SeqNum::new(bytes);
        let ack = Acknowledged {
            bytes,
            count: 1,
            number,
            sent: number,
            now: Instant::ZERO,
            smoothed: None,
            round_trip: None,
            lost: 0,
            in_flight: 0,
            sample: None,
        };
        congestion.controller().on_acknowledged(&ack);
    }

    #[test]
    fn every_controller_is_found_by_its_name() {
        for name in CongestionName::ALL {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        let fixed = CongestionName::Fixed(16);
        assert_eq!((fixed.to_string().as_str(), "fixed:16".parse()), ("fixed:16", Ok(fixed)));
        for wrong in ["fixed", "fixed:", "fixed:0", "fixed:x", "fixed:65536"] {
            assert_eq!(wrong.parse::<CongestionName>(), Err(UnknownCongestion), "{wrong}");
        }
        assert_eq!("vegas".parse::<CongestionName>(), Err(UnknownCongestion));
        assert_eq!(
            UnknownCongestion.to_string(),
            "no congestion control of this name: \
             use tahoe, reno, new-reno, cubic, bbr, or fixed:SEGMENTS"
        );
    }

    #[test]
    fn every_controller_is_restored_from_a_compact_connection() {
        let config = crate::Config::modern().into();
        for name in CongestionName::ALL.into_iter().chain([CongestionName::Fixed(16)]) {
            let congestion = Congestion::new(name, 1_000, 10, false, 7);
            let mut packer = Packer::new(&config);
            congestion.pack(&mut packer);
            let bytes = packer.finish().expect("the initial state can be packed");
            let back = Congestion::unpack(&mut Unpacker::new(&config, &bytes));
            assert_eq!(back, congestion, "{name}");
        }
    }

    #[test]
    fn slow_start_doubles_and_congestion_avoidance_adds_one_segment_a_round_trip() {
        let mut congestion = Congestion::new(CongestionName::NewReno, 1_000, 2, false, 0);
        for _ in 0..2 {
            acknowledge(&mut congestion, 1_000);
        }
        assert_eq!(congestion.window().cwnd(), 4_000);
        congestion.controller().on_timeout(4_000);
        assert_eq!((congestion.window().cwnd(), congestion.window().ssthresh()), (1_000, 2_000));
        acknowledge(&mut congestion, 1_000);
        assert_eq!(congestion.window().cwnd(), 2_000);
        for _ in 0..2 {
            acknowledge(&mut congestion, 1_000);
        }
        assert_eq!(congestion.window().cwnd(), 3_000);
    }

    #[test]
    fn tahoe_restarts_slow_start_and_others_only_reduce_the_threshold() {
        let after_loss = |name| {
            let mut congestion = Congestion::new(name, 1_000, 10, false, 0);
            congestion.controller().on_loss(10_000);
            (congestion.window().cwnd(), congestion.window().ssthresh())
        };
        assert_eq!(after_loss(CongestionName::Tahoe), (1_000, 5_000));
        assert_eq!(after_loss(CongestionName::Reno), (10_000, 5_000));
        assert_eq!(after_loss(CongestionName::NewReno), (10_000, 5_000));
        assert_eq!(after_loss(CongestionName::Cubic), (10_000, 7_000));
    }

    #[test]
    fn a_window_that_has_grown_beyond_is_not_taken_back() {
        for name in [CongestionName::Reno, CongestionName::NewReno, CongestionName::Cubic] {
            let mut congestion = Congestion::new(name, 1_000, 10, false, 0);
            let before = congestion.clone();
            congestion.controller().on_loss(10_000);
            congestion.controller().window_mut().add(20_000);
            let now = congestion.clone();
            congestion.restore(before);
            assert_eq!(congestion, now, "{name}");
        }
    }

    #[test]
    fn a_spurious_loss_leaves_no_trace() {
        let mut congestion = Congestion::new(CongestionName::Cubic, 1_000, 10, false, 0);
        let before = congestion.clone();
        congestion.controller().on_timeout(10_000);
        congestion.restore(before.clone());
        assert_eq!(congestion, before);
    }
}
