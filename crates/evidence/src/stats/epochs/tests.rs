//! Tests of epochs on made-up sweeps, whose true rates, epochs and noise are known.

use super::*;
use oorandom::Rand64;

/// The parameters of a made-up sweep on a machine whose speed may change.
#[derive(Clone, Copy)]
struct World {
    cells: usize,
    repeats: usize,
    /// Average number of runs in an epoch; 0 for a machine of constant speed.
    epoch_runs: f64,
    /// Maximum slowdown in an epoch, relative to the machine's highest speed, as a natural
    /// logarithm.
    amplitude: f64,
    /// Standard deviation of the noise in the natural logarithm of a rate.
    noise: f64,
    /// Correlation between the noise of a run and the noise of the next run, from 0 to 1.
    memory: f64,
    /// Maximum deviation of a cell's slope from 1. The slope is the sensitivity of the cell's rate
    /// to the machine's speed.
    slope: f64,
    seed: u64,
}

const WORLD: World = World {
    cells: 49,
    repeats: 16,
    epoch_runs: 40.0,
    amplitude: 1.0,
    noise: 0.015,
    memory: 0.0,
    slope: 0.0,
    seed: 1,
};

/// A made-up sweep with its true parameters: the slope of each cell, and the logarithm of the
/// machine's speed at each run.
struct Truth {
    runs: Vec<Observation>,
    slopes: Vec<f64>,
    speeds: Vec<f64>,
}

/// A random number generator with the probability distributions that the tests need.
struct Dice(Rand64);

impl Dice {
    fn within(&mut self, amplitude: f64) -> f64 {
        (2.0 * self.0.rand_float() - 1.0) * amplitude
    }

    /// Returns a random number from an approximately normal distribution with mean 0 and this
    /// standard deviation.
    fn normal(&mut self, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.0.rand_float()).sum();
        (sum - 6.0) * deviation
    }
}

impl World {
    /// Returns the true level of a cell: the natural logarithm of its rate at the machine's highest
    /// speed.
    fn level(cell: usize) -> f64 {
        20.0 + as_f64(cell as u64 % 7) * 0.11 + as_f64(cell as u64 / 7) * 0.05
    }

    /// Returns the runs of the made-up sweep in the order of time. The cells are measured in random
    /// order.
    fn runs(self) -> Vec<Observation> {
        self.truth().runs
    }

    /// Returns the made-up sweep with its true parameters.
    fn truth(self) -> Truth {
        let mut dice = Dice(Rand64::new(u128::from(self.seed)));
        let slopes: Vec<f64> = (0..self.cells).map(|_| 1.0 + dice.within(self.slope)).collect();
        let mut order: Vec<usize> =
            (0..self.cells * self.repeats).map(|number| number % self.cells).collect();
        crate::schedule::shuffle(&mut order, self.seed);
        let (mut epoch, mut speed, mut inherited) = (0, 0.0, 0.0);
        let mut speeds = Vec::new();
        let runs = order.into_iter().map(|cell| {
            if self.epoch_runs > 0.0 && dice.0.rand_float() < 1.0 / self.epoch_runs {
                // Every third epoch has the highest speed, whose logarithm is 0. The other epochs
                // are slower.
                epoch += 1;
                speed = if epoch % 3 == 0 { 0.0 } else { -dice.within(self.amplitude).abs() };
            }
            inherited = self.memory * inherited
                + dice.normal(self.noise) * (1.0 - self.memory * self.memory).sqrt();
            speeds.push(speed);
            let log_rate = Self::level(cell) + slopes[cell] * speed + inherited;
            Observation { cell, log_rate }
        });
        Truth { runs: runs.collect(), slopes, speeds }
    }

    /// Returns two shares of all cells. The first is the share of cells whose true rate is within
    /// the estimated 95 % interval. The second is the share of cells whose interval is at most ±3 %
    /// wide.
    fn covered_and_conclusive(self) -> [f64; 2] {
        let Truth { runs, slopes, speeds } = self.truth();
        let epochs = Epochs::of(&runs);
        // The true rate of a cell must be taken at the speed to which its estimate refers. Rates
        // that are corrected for epochs refer to the mean speed. Without epochs, the estimate is
        // the median of the cell's runs, which refers to the median speed.
        let speed = match &epochs {
            Some(_) => speeds.iter().sum::<f64>() / as_f64(speeds.len() as u64),
            None => median(speeds),
        };
        let mut counts = [0_u32; 2];
        for (cell, slope) in slopes.iter().enumerate() {
            let of_cell = runs.iter().enumerate().filter(|(_, run)| run.cell == cell);
            let corrected = of_cell.map(|(number, &run)| match &epochs {
                Some(epochs) => epochs.corrected(number, run),
                None => run.log_rate,
            });
            let sample = Sample::new(corrected.collect()).unwrap();
            let interval = crate::stats::interval(&[&sample], 1, |medians| medians[0]);
            let added = epochs.as_ref().map_or(0.0, |epochs| epochs.added_half_widths[cell]);
            let (low, high) = (interval.low - added, interval.high + added);
            let level = Self::level(cell) + slope * speed;
            counts[0] += u32::from(low <= level && level <= high);
            counts[1] += u32::from((high - low) / 2.0 <= 0.03);
        }
        counts.map(|count| f64::from(count) / as_f64(self.cells as u64))
    }
}

#[test]
fn known_levels_are_recovered_within_their_intervals() {
    // `epoch_runs` is the mean length of an epoch. Speeds are estimated from a window of
    // neighbouring runs, and epochs of 20 runs are hardly longer than it. The estimates are then
    // less precise, so a smaller share of narrow intervals (`least`) is required.
    for (epoch_runs, least) in [(20.0, 0.9), (50.0, 0.95), (200.0, 0.95), (800.0, 0.95)] {
        for slope in [0.0, 0.15] {
            let mut sums = [0.0; 2];
            for seed in 0..5 {
                let world = World { epoch_runs, slope, seed, ..WORLD };
                let [covered, conclusive] = world.covered_and_conclusive();
                sums = [sums[0] + covered / 5.0, sums[1] + conclusive / 5.0];
            }
            assert!(sums[0] >= 0.9 && sums[1] >= least, "{epoch_runs} {slope}: {sums:?}");
        }
    }
}

#[test]
fn autocorrelated_noise_is_not_mistaken_for_an_effect_of_cells() {
    for memory in [0.3, 0.6] {
        let world = World { memory, slope: 0.1, ..WORLD };
        let [covered, conclusive] = world.covered_and_conclusive();
        assert!(covered >= 0.85 && conclusive >= 0.95, "{memory}: {covered} {conclusive}");
    }
}

#[test]
fn the_fit_is_reported_before_and_after() {
    let epochs = Epochs::of(&World { slope: 0.1, ..WORLD }.runs()).unwrap();
    assert!(epochs.before.deviation > 0.2 && epochs.before.lag_1 > 0.5, "{:?}", epochs.before);
    assert!(epochs.after.deviation < 0.025 && epochs.after.lag_1 < 0.3, "{:?}", epochs.after);
}

#[test]
fn a_machine_of_constant_speed_has_no_epochs() {
    for seed in 0..20 {
        let world = World { epoch_runs: 0.0, noise: 0.05, seed, ..WORLD };
        assert_eq!(Epochs::of(&world.runs()), None);
        assert_eq!(Epochs::of(&World { repeats: 3, ..world }.runs()), None);
        assert_eq!(Epochs::of(&World { noise: 0.0, ..world }.runs()), None);
    }
}

#[test]
fn few_runs_have_no_epochs() {
    assert_eq!(Epochs::of(&[]), None);
    assert_eq!(Epochs::of(&World { repeats: 2, ..WORLD }.runs()), None);
    assert_eq!(Epochs::of(&World { cells: 4, repeats: 8, ..WORLD }.runs()), None);
    let mut runs = WORLD.runs();
    runs[7].log_rate = f64::NAN;
    assert_eq!(Epochs::of(&runs), None);
}

#[test]
fn disturbed_runs_do_not_displace_their_cells() {
    let world = World { slope: 0.1, ..WORLD };
    let mut runs = world.runs();
    let clean = Epochs::of(&runs).unwrap();
    for run in runs.iter_mut().step_by(23) {
        run.log_rate -= 1.5;
    }
    let disturbed = Epochs::of(&runs).unwrap();
    let differences = clean.speeds.iter().zip(&disturbed.speeds).map(|(one, other)| one - other);
    assert!(robust_deviation(&differences.collect::<Vec<_>>()) < 0.01);
}
