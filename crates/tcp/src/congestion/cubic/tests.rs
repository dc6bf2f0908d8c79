//! Tests that compare CUBIC with the formulas of RFC 9438 in floating point, over virtual time.

use super::*;
use linerate_wire::SeqNum;

const MSS: u32 = 1_448;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A sender with CUBIC that always has data to send, on a path with a constant round-trip time.
struct Path {
    cubic: Cubic,
    now: Instant,
    round_trip: Duration,
    /// The number of bytes that one acknowledgement covers.
    per_ack: u32,
}

impl Path {
    fn new(round_trip: Duration) -> Self {
        Self::with(Cubic::new(Window::new(MSS, 10), false), round_trip)
    }

    /// Returns a sender that had a window of `segments` segments and has just recovered from a
    /// loss. Its next stage of congestion avoidance begins with the next acknowledgement.
    fn after_loss(segments: u32, round_trip: Duration) -> Self {
        let mut path = Self::with(Cubic::new(Window::new(MSS, segments), false), round_trip);
        path.lose();
        path
    }

    fn with(cubic: Cubic, round_trip: Duration) -> Self {
        Self { cubic, now: Instant::ZERO + ms(1_000), round_trip, per_ack: MSS }
    }

    fn cwnd(&self) -> u32 {
        self.cubic.window.cwnd()
    }

    fn segments(&self) -> f64 {
        f64::from(self.cwnd()) / f64::from(MSS)
    }

    fn lose(&mut self) {
        self.cubic.on_loss(self.cwnd());
        self.cubic.window.set_to_threshold_plus(0);
    }

    fn ack(&self, bytes: u32) -> Acknowledged {
        let number = SeqNum::new(0);
        let smoothed = Some(self.round_trip);
        Acknowledged {
            bytes,
            count: 1,
            number,
            sent: number,
            now: self.now,
            smoothed,
            round_trip: None,
            lost: 0,
            in_flight: 0,
            sample: None,
        }
    }

    /// Acknowledges all segments of a window, evenly spread over one round trip.
    fn round(&mut self) {
        let acks = u64::from((self.cwnd() / self.per_ack).max(1));
        let start = self.now;
        for index in 1..=acks {
            self.now = start + self.round_trip * index / acks;
            self.cubic.on_acknowledged(&self.ack(self.per_ack));
        }
    }

    /// Returns the average growth of the window over `rounds` round trips, in segments per round
    /// trip.
    fn segments_a_round(&mut self, rounds: u32) -> f64 {
        let before = self.segments();
        for _ in 0..rounds {
            self.round();
        }
        (self.segments() - before) / f64::from(rounds)
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.round();
        }
    }
}

/// A model of CUBIC by the formulas of RFC 9438, in floating point, with segments and seconds as
/// units.
struct Model {
    cwnd: f64,
    w_max: f64,
    w_est: f64,
    cwnd_prior: f64,
    t: f64,
}

impl Model {
    fn w_cubic(&self, cwnd_epoch: f64, t: f64) -> f64 {
        let k = ((self.w_max - cwnd_epoch) / 0.4).cbrt();
        0.4 * (t - k).powi(3) + self.w_max
    }

    fn acknowledge(&mut self, cwnd_epoch: f64, segments: f64, round_trip: f64) {
        let alpha = if self.w_est >= self.cwnd_prior { 1.0 } else { 3.0 * 0.3 / 1.7 };
        self.w_est += alpha * segments / self.cwnd;
        if self.w_cubic(cwnd_epoch, self.t) < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est);
        } else {
            let target =
                self.w_cubic(cwnd_epoch, self.t + round_trip).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) / self.cwnd * segments;
        }
    }
}

/// Passes the same acknowledgements to CUBIC and to the model, and compares the two windows after
/// each acknowledgement.
fn compare_with_the_model(segments: u32, round_trip: Duration, span: Duration, per_ack: u32) {
    let mut path = Path::after_loss(segments, round_trip);
    path.per_ack = per_ack * MSS;
    // After the loss CWND equals SSTHRESH, which counts as slow start. The first acknowledgement
    // ends slow start, so it is processed before the comparison begins.
    path.cubic.on_acknowledged(&path.ack(MSS));
    let (start, cwnd_epoch) = (path.now, path.segments());
    let prior = f64::from(segments);
    let mut model =
        Model { cwnd: cwnd_epoch, w_max: prior, w_est: cwnd_epoch, cwnd_prior: prior, t: 0.0 };
    let tick = |path: &Path| path.round_trip / u64::from((path.cwnd() / path.per_ack).max(1));
    while path.now.since(start) < span {
        model.t = path.now.since(start).as_secs_f64();
        model.acknowledge(cwnd_epoch, f64::from(per_ack), round_trip.as_secs_f64());
        path.cubic.on_acknowledged(&path.ack(path.per_ack));
        let off = (path.segments() - model.cwnd).abs();
        assert!(
            off < 0.01 + 1e-3 * model.cwnd,
            "{} for {} at {}",
            path.segments(),
            model.cwnd,
            model.t
        );
        path.now += tick(&path);
    }
}

#[test]
fn the_window_follows_the_formulas_for_many_round_trips() {
    for (millis, segments) in
        [(1, 10), (1, 100), (5, 50), (10, 10), (10, 500), (30, 200), (100, 1_000), (300, 50)]
    {
        for per_ack in [1, 2] {
            compare_with_the_model(segments, ms(millis), ms(200 * millis).max(ms(2_000)), per_ack);
        }
    }
}

/// RFC 9438 figure 2: the window reaches `W_max` K seconds after a loss. K does not depend on the
/// round-trip time.
#[test]
fn the_plateau_is_reached_after_k_for_any_round_trip() {
    // The loss reduces the window from 1,000 segments by 300, so K is the cube root of 300 / 0.4 in
    // seconds.
    let k = ms(9_086);
    for millis in [50, 100, 200] {
        let mut path = Path::after_loss(1_000, ms(millis));
        path.run(k);
        assert!(
            (path.segments() - 1_000.0).abs() < 2.0,
            "{} after K at {millis} ms",
            path.segments()
        );
        path.run(k);
        let twice = path.segments();
        assert!((twice - 1_300.0).abs() < 30.0, "{twice} after 2·K at {millis} ms");
    }
}

/// RFC 9438 §4.2: the target exceeds the window by at most half of the window. Each acknowledged
/// segment therefore adds at most half a segment, and a window of acknowledgements at most half of
/// the window.
#[test]
fn the_window_grows_by_no_more_than_half_in_a_round_trip() {
    let mut path = Path::after_loss(20, ms(5_000));
    path.round();
    for _ in 0..20 {
        let before = path.cwnd();
        path.round();
        assert!(f64::from(path.cwnd()) <= f64::from(before) * 1.5);
        assert!(path.cwnd() >= before);
    }
}

/// On a path with a short round-trip time, the window grows like that of Reno. The growth is α =
/// 9/17 segments per round trip until the window has its size before the loss. After that, it is
/// one segment per round trip.
#[test]
fn the_reno_friendly_region_grows_like_reno() {
    let mut path = Path::after_loss(100, ms(1));
    path.round();
    assert!((path.segments_a_round(50) - 9.0 / 17.0).abs() < 0.01);
    path.run(ms(10));
    assert!(path.cwnd() > 100 * MSS);
    assert!((path.segments_a_round(100) - 1.0).abs() < 0.01);
}

/// RFC 9406 §4.3: HyStart++ should be used only for the initial slow start.
#[test]
fn hystart_applies_only_to_the_initial_slow_start() {
    let mut path = Path::new(ms(50));
    assert!(path.cubic.hystart.is_some());
    path.cubic.on_timeout(20 * MSS);
    path.round();
    assert!(path.cubic.is_in_slow_start() && path.cubic.hystart.is_none());
}

#[test]
fn a_loss_leaves_seven_tenths() {
    let mut path = Path::new(ms(50));
    path.cubic.on_loss(20 * MSS);
    assert_eq!(path.cubic.window.ssthresh(), 14 * MSS);
    assert_eq!(path.cwnd(), 10 * MSS, "the window follows what is delivered");
    assert_eq!((path.cubic.w_max, path.cubic.cwnd_prior), (Some(10 * MSS), 10 * MSS));
    path.cubic.on_loss(MSS);
    assert_eq!(path.cubic.window.ssthresh(), 2 * MSS);
}

#[test]
fn a_second_loss_at_a_smaller_window_applies_fast_convergence() {
    let mut path = Path::after_loss(1_000, ms(50));
    assert_eq!(path.cubic.w_max, Some(1_000 * MSS));
    path.run(ms(500));
    let cwnd = path.cwnd();
    path.lose();
    assert_eq!(path.cubic.w_max, Some(part(cwnd, (85, 100))));
    path.run(ms(60_000));
    let cwnd = path.cwnd();
    assert!(cwnd > 1_000 * MSS);
    path.lose();
    assert_eq!(path.cubic.w_max, Some(cwnd), "no fast convergence at a larger window");
}

/// RFC 9438 §4.8: after a timeout, the window is one segment, and slow start leads to 0.7 times the
/// flight. Since `W_max` was discarded, the next curve begins at its plateau.
#[test]
fn after_a_timeout_the_curve_begins_at_the_plateau() {
    let mut path = Path::after_loss(200, ms(50));
    path.run(ms(1_000));
    path.cubic.on_timeout(100 * MSS);
    assert_eq!((path.cwnd(), path.cubic.window.ssthresh()), (MSS, 70 * MSS));
    while path.cubic.is_in_slow_start() {
        path.round();
    }
    path.run(ms(50));
    let w_max = path.cubic.stage.clone().unwrap().curve.w_max();
    assert_eq!(path.cubic.stage.unwrap().curve, Curve::from(w_max, w_max, MSS));
    assert!((70 * MSS..72 * MSS).contains(&w_max), "{w_max}");
}

/// RFC 9438 §4.10: if HyStart++ ends slow start without a loss, `W_max` is the window at the end of
/// slow start. The curve of congestion avoidance thus begins at its plateau, where the window
/// hardly grows.
#[test]
fn after_hystart_the_curve_begins_at_the_plateau() {
    let mut path = Path::new(ms(50));
    let mut number = 0;
    let mut rounds = 0;
    while path.cubic.hystart.is_some() {
        rounds += 1;
        let window = path.cwnd();
        let round_trip = if rounds < 4 { ms(50) } else { ms(60) };
        for index in 1..=window / MSS {
            let ack = Acknowledged {
                number: SeqNum::new(number + index * MSS),
                sent: SeqNum::new(number + window + index * MSS),
                round_trip: Some(round_trip),
                in_flight: 0,
                sample: None,
                ..path.ack(MSS)
            };
            path.cubic.on_acknowledged(&ack);
            if path.cubic.hystart.is_none() {
                break;
            }
        }
        number += window;
        path.now += round_trip;
    }
    assert!(
        (8..=9).contains(&rounds),
        "three rounds as reference and five of conservative slow start, not {rounds}"
    );
    let cwnd = path.cwnd();
    assert_eq!((path.cubic.window.ssthresh(), path.cubic.cwnd_prior), (cwnd, cwnd));
    path.run(ms(200));
    assert!(path.cwnd() < cwnd + 8 * MSS);
    assert!(path.cubic.w_max.is_some_and(|w_max| w_max <= cwnd + MSS));
}

/// RFC 9438 §4.2, §5.8: the clock of the curve stops while the sender is not cwnd-limited, whether
/// the sender then sends a few segments or none.
#[test]
fn time_without_use_of_the_window_does_not_count() {
    let used = |pause: fn(&mut Path)| {
        let mut path = Path::after_loss(500, ms(50));
        path.run(ms(2_000));
        let before = path.cwnd();
        pause(&mut path);
        assert_eq!(path.cwnd(), before);
        path.run(ms(2_000));
        path.cwnd()
    };
    let always = used(|_| ());
    let trickling = used(|path| {
        for _ in 0..1_000 {
            path.cubic.on_acknowledged_unused(&path.ack(MSS));
            path.now += ms(50);
        }
    });
    let idle = used(|path| {
        path.now += ms(50_000);
        path.cubic.on_idle(ms(50_000));
    });
    let both = used(|path| {
        path.cubic.on_acknowledged_unused(&path.ack(MSS));
        path.now += ms(50_000);
        path.cubic.on_idle(ms(50_000));
    });
    for cwnd in [trickling, idle, both] {
        assert!(cwnd.abs_diff(always) < 10, "{cwnd}, and {always} without a pause");
    }
}

/// After a long idle period, slow start from the initial window leads to SSTHRESH. Then a new curve
/// begins, which rises to the old `W_max`.
#[test]
fn a_long_idle_time_starts_a_new_stage() {
    let mut path = Path::new(ms(50));
    path.cubic.window.add(90 * MSS);
    path.lose();
    path.run(ms(1_000));
    assert!(path.cubic.stage.is_some());
    path.now += ms(10_000);
    path.cubic.window.forget_after_idle();
    let idle_until = path.now;
    path.round();
    assert_eq!((path.cwnd(), path.cubic.stage.clone()), (20 * MSS, None));
    path.run(ms(300));
    let stage = path.cubic.stage.clone().unwrap();
    assert_eq!(stage.curve.w_max(), 100 * MSS);
    assert!(stage.began > idle_until);
}

#[test]
fn a_part_is_exact_and_never_overflows() {
    assert_eq!(part(1 << 30, BETA), 751_619_276);
    assert_eq!((part(9, BETA), part(10, BETA), part(11, CONVERGENCE)), (6, 7, 9));
}

#[test]
fn remainders_of_whole_bytes_are_kept() {
    let mut rest = Rest::default();
    let sum: u32 = (0..17).map(|_| rest.take(9, 17)).sum();
    assert_eq!(sum, 9);
}
