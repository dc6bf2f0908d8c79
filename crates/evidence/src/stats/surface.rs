//! Predictions of the throughput of cells that were not measured.
//!
//! A model with four parameters describes the table of cells as a surface: a path with a capacity
//! and a round-trip time carries a window, which the smaller buffer determines. Deviations from the
//! model are interpolated between measured cells by a Gaussian process, whose variance is the
//! uncertainty of a prediction. Intervals are widened until they cover most measured cells, each
//! predicted from the others.

use super::as_f64;

/// Minimum number of measured cells: four for the parameters of the model, and two to judge it.
pub const FEWEST_CELLS: usize = 6;
/// Half-width of a 95 % interval, in standard deviations.
const WIDTH: f64 = 1.96;
/// Standard deviation of the runs of a cell that is assumed if no cell was measured twice.
const USUAL_NOISE: f64 = 0.03;
/// Minimum standard deviation of rates from the model, as the logarithm of a ratio.
const MIN_DEVIATION: f64 = 0.02;
/// Exponent of the power mean that approximates the smaller buffer; larger values are closer.
const SHARPNESS: f64 = 6.0;
/// Candidate distances over which deviations from the model are similar, as logarithms of buffer
/// sizes.
const LENGTHS: [f64; 3] = [0.35, 0.7, 1.4];
/// Maximum number of cells in a fit, whose duration grows with their cube. If there are more, every
/// n-th one is used.
const MAX_CELLS: usize = 160;
/// Number of groups in cross-validation: each group is predicted from the others.
const HELD_BACK_EVERY: usize = 4;

/// A measured cell as input of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfacePoint {
    /// The send buffer in bytes.
    pub send: f64,
    /// The receive buffer in bytes.
    pub receive: f64,
    /// The rate in bytes per second, which must be above zero.
    pub rate: f64,
}

/// The parameters of the throughput model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceModel {
    /// The rate with unlimited buffers, in bytes per second.
    pub capacity: f64,
    /// The round-trip time with a small window in seconds: from sending a byte until its
    /// acknowledgement makes room for the next one.
    pub round_trip: f64,
    /// Window that a byte of receive buffer provides, divided by the window that a byte of send
    /// buffer provides.
    pub receive_share: f64,
    /// How much the work on data overlaps with the round trip: 1 if their times add up, large if
    /// the longer one determines the rate.
    pub overlap: f64,
}

/// A predicted rate with its interval, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The predicted rate.
    pub rate: f64,
    /// Lower bound of the 95 % interval for the rate of one run.
    pub low: f64,
    /// Upper bound of the 95 % interval for the rate of one run.
    pub high: f64,
}

/// The accuracy of predictions of measured cells, by cross-validation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceScore {
    /// Number of measured cells that were predicted from others.
    pub cells: usize,
    /// Number of these cells whose measured rate is within the predicted interval.
    pub within: usize,
    /// Median of the relative errors of the predictions.
    pub median_error: f64,
}

/// A model that is fitted to measured cells, and predicts others.
#[derive(Clone, Debug)]
pub struct Surface {
    model: SurfaceModel,
    points: Vec<SurfacePoint>,
    /// Cholesky factor of the covariance matrix: the lower triangle, row by row.
    factor: Vec<Vec<f64>>,
    /// The inverse covariance matrix, multiplied by the deviations of the cells from the model.
    weights: Vec<f64>,
    kernel: Kernel,
    noise: f64,
    /// Factor by which the half-widths of predicted intervals are multiplied.
    widening: f64,
}

/// The covariance function of deviations from the model. It decreases with the distance of two
/// cells.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    variance: f64,
    length: f64,
}

impl Kernel {
    fn of(self, one: &SurfacePoint, other: &SurfacePoint) -> f64 {
        let [x, y] = [one.send / other.send, one.receive / other.receive].map(f64::ln);
        self.variance * (-(x * x + y * y) / (2.0 * self.length * self.length)).exp()
    }
}

impl SurfaceModel {
    /// Returns the rate for buffers of these sizes in bytes, in bytes per second.
    #[must_use]
    pub fn rate(&self, send: f64, receive: f64) -> f64 {
        let window = smooth(send, receive * self.receive_share, -SHARPNESS);
        let by_window = window / self.round_trip;
        smooth(by_window, self.capacity, -self.overlap)
    }

    /// Fits the parameters to the logarithms of the rates, by a search along one parameter at a
    /// time.
    fn fit(points: &[SurfacePoint]) -> Self {
        let capacity = points.iter().map(|point| point.rate).fold(f64::MIN_POSITIVE, f64::max);
        let round_trip = points
            .iter()
            .map(|point| point.send.min(point.receive) / point.rate)
            .fold(f64::INFINITY, f64::min);
        let mut best = [capacity.ln(), round_trip.ln(), 0.0, 1.0];
        let mut least = Self::of(best).squares(points);
        let mut step = 0.5;
        while step > 1e-3 {
            let mut has_improved = false;
            for parameter in 0..best.len() {
                for direction in [step, -step] {
                    let mut tried = best;
                    tried[parameter] += direction;
                    let squares = Self::of(tried).squares(points);
                    if squares < least {
                        (best, least, has_improved) = (tried, squares, true);
                    }
                }
            }
            if !has_improved {
                step /= 2.0;
            }
        }
        Self::of(best)
    }

    /// Creates a model from the logarithms of its parameters.
    fn of(logarithms: [f64; 4]) -> Self {
        let [capacity, round_trip, receive_share, overlap] = logarithms.map(f64::exp);
        Self { capacity, round_trip, receive_share, overlap: overlap.clamp(0.7, 12.0) }
    }

    fn deviation(&self, point: &SurfacePoint) -> f64 {
        (point.rate / self.rate(point.send, point.receive)).ln()
    }

    fn squares(&self, points: &[SurfacePoint]) -> f64 {
        let squares: f64 = points.iter().map(|point| self.deviation(point).powi(2)).sum();
        if squares.is_finite() { squares } else { f64::INFINITY }
    }
}

/// Returns the power mean of two numbers, without the division by their count. A large negative
/// exponent approximates the smaller number.
fn smooth(one: f64, other: f64, exponent: f64) -> f64 {
    let smaller = one.min(other);
    smaller
        * ((one / smaller).powf(exponent) + (other / smaller).powf(exponent)).powf(1.0 / exponent)
}

impl Surface {
    /// Fits a surface to measured cells. `noise` is the standard deviation of the logarithms of the
    /// runs within cells, if known. Returns `None` for fewer than [`FEWEST_CELLS`] cells.
    #[must_use]
    pub fn fit(points: &[SurfacePoint], noise: Option<f64>) -> Option<Self> {
        let every = points.len().div_ceil(MAX_CELLS).max(1);
        let points = points.iter().filter(|point| point.rate > 0.0).step_by(every);
        let points: Vec<SurfacePoint> = points.copied().collect();
        if points.len() < FEWEST_CELLS {
            return None;
        }
        let model = SurfaceModel::fit(&points);
        let deviation = (model.squares(&points) / as_f64(points.len() as u64 - 1)).sqrt();
        let variance = deviation.max(MIN_DEVIATION).powi(2);
        let noise = noise.unwrap_or(USUAL_NOISE).max(1e-3);
        let of_length = |length| {
            let kernel = Kernel { variance, length };
            Self::with(model, points.clone(), kernel, noise)
        };
        let surfaces = LENGTHS.into_iter().filter_map(of_length);
        surfaces.min_by(|one, other| one.widening.total_cmp(&other.widening))
    }

    /// Creates a surface with this covariance function; `None` if the matrix is not positive
    /// definite.
    fn with(
        model: SurfaceModel,
        points: Vec<SurfacePoint>,
        kernel: Kernel,
        noise: f64,
    ) -> Option<Self> {
        let entry = |row: usize, column: usize| {
            let own = if row == column { noise * noise } else { 0.0 };
            kernel.of(&points[row], &points[column]) + own
        };
        let factor = cholesky(points.len(), entry)?;
        let deviations: Vec<f64> = points.iter().map(|point| model.deviation(point)).collect();
        let weights = backward(&factor, &forward(&factor, &deviations));
        let mut surface = Self { model, points, factor, weights, kernel, noise, widening: 1.0 };
        surface.widening = surface.needed_widening();
        Some(surface)
    }

    /// Returns the factor by which intervals must be widened for 90 % intervals to cover 90 % of
    /// the measured cells, each predicted from the others.
    fn needed_widening(&self) -> f64 {
        const NINE_TENTHS: f64 = 1.645;
        let count = self.points.len();
        let mut errors: Vec<f64> = (0..count)
            .map(|index| {
                let mut unit = vec![0.0; count];
                unit[index] = 1.0;
                // The error of predicting a cell from all others has a closed form, so no surface
                // is fitted again.
                let inverse = backward(&self.factor, &forward(&self.factor, &unit))[index];
                self.weights[index].abs() / inverse.sqrt()
            })
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        (errors[(count * 9 / 10).min(count - 1)] / NINE_TENTHS).max(1.0)
    }

    /// Returns the fitted parameters of the model.
    #[must_use]
    pub const fn model(&self) -> &SurfaceModel {
        &self.model
    }

    /// Predicts the rate for buffers of these sizes in bytes.
    #[must_use]
    pub fn predict(&self, send: f64, receive: f64) -> Prediction {
        let at = SurfacePoint { send, receive, rate: 1.0 };
        let near: Vec<f64> = self.points.iter().map(|point| self.kernel.of(point, &at)).collect();
        let added: f64 = near.iter().zip(&self.weights).map(|(near, weight)| near * weight).sum();
        let explained: f64 = forward(&self.factor, &near).iter().map(|value| value * value).sum();
        let variance = (self.kernel.variance - explained).max(0.0) + self.noise * self.noise;
        let half = WIDTH * self.widening * variance.sqrt();
        let rate = self.model.rate(send, receive) * added.exp();
        Prediction { rate, low: rate * (-half).exp(), high: rate * half.exp() }
    }

    /// Scores the model by cross-validation: each measured cell is predicted once from cells of
    /// other groups. Returns `None` if there are too few cells.
    #[must_use]
    pub fn score(points: &[SurfacePoint], noise: Option<f64>) -> Option<SurfaceScore> {
        let mut errors = Vec::new();
        let mut within = 0;
        for part in 0..HELD_BACK_EVERY {
            let is_held = |index: usize| index % HELD_BACK_EVERY == part;
            let rest = points.iter().enumerate().filter(|(index, _)| !is_held(*index));
            let rest: Vec<SurfacePoint> = rest.map(|(_, point)| *point).collect();
            let surface = Self::fit(&rest, noise)?;
            let held = points.iter().enumerate().filter(|(index, _)| is_held(*index));
            for (_, point) in held.filter(|(_, point)| point.rate > 0.0) {
                let predicted = surface.predict(point.send, point.receive);
                within += usize::from((predicted.low..=predicted.high).contains(&point.rate));
                errors.push((predicted.rate / point.rate - 1.0).abs());
            }
        }
        errors.sort_unstable_by(f64::total_cmp);
        let median_error = *errors.get(errors.len() / 2)?;
        Some(SurfaceScore { cells: errors.len(), within, median_error })
    }
}

/// Returns the scalar product of two vectors. A longer one is cut to the length of the shorter one.
fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Returns the Cholesky factor of a symmetric matrix; `None` if the matrix is not positive
/// definite.
fn cholesky(size: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Vec<Vec<f64>>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(size);
    for row in 0..size {
        let mut line: Vec<f64> = Vec::with_capacity(row + 1);
        for (column, above) in factor.iter().enumerate() {
            let rest = entry(row, column) - product(&line, above);
            line.push(rest / above[column]);
        }
        let rest = entry(row, row) - product(&line, &line);
        line.push((rest > 0.0).then(|| rest.sqrt())?);
        factor.push(line);
    }
    Some(factor)
}

/// Solves the linear equations of a lower triangular matrix.
fn forward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(right.len());
    for (line, value) in factor.iter().zip(right) {
        let sum: f64 = line.iter().zip(&solved).map(|(one, other)| one * other).sum();
        solved.push((value - sum) / line[line.len() - 1]);
    }
    solved
}

/// Solves the linear equations of a lower triangular matrix's transpose.
fn backward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solved = right.to_vec();
    for row in (0..right.len()).rev() {
        solved[row] /= factor[row][row];
        let value = solved[row];
        for (column, entry) in factor[row][..row].iter().enumerate() {
            solved[column] -= entry * value;
        }
    }
    solved
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rate of a path with 50 Mb/s and 20 ms, whose window is two thirds of the receive
    /// buffer.
    fn truth(send: f64, receive: f64) -> f64 {
        (send.min(receive / 1.5) / 0.02).min(6.25e6)
    }

    fn points(sizes: &[f64], rate: impl Fn(f64, f64) -> f64) -> Vec<SurfacePoint> {
        let row = |&send: &f64| {
            let point = |receive: f64| SurfacePoint { send, receive, rate: rate(send, receive) };
            sizes.iter().map(|&receive| point(receive)).collect::<Vec<_>>()
        };
        sizes.iter().flat_map(row).collect()
    }

    #[test]
    fn cells_between_measured_ones_are_in_their_intervals() {
        let sizes = [4e3, 16e3, 64e3, 256e3];
        let surface = Surface::fit(&points(&sizes, truth), Some(0.02)).unwrap();
        let model = surface.model();
        assert!((model.capacity / 6.25e6 - 1.0).abs() < 0.1, "{model:?}");
        assert!((model.round_trip / 0.02 - 1.0).abs() < 0.15, "{model:?}");
        assert!((model.receive_share * 1.5 - 1.0).abs() < 0.15, "{model:?}");
        for send in [8e3, 32e3, 128e3] {
            for receive in [8e3, 32e3, 128e3] {
                let predicted = surface.predict(send, receive);
                let rate = truth(send, receive);
                assert!((predicted.low..=predicted.high).contains(&rate), "{rate} {predicted:?}");
                assert!((predicted.rate / rate - 1.0).abs() < 0.25, "{rate} {predicted:?}");
            }
        }
    }

    #[test]
    fn a_measured_cell_has_the_narrowest_interval() {
        let surface = Surface::fit(&points(&[4e3, 32e3, 256e3], truth), Some(0.01)).unwrap();
        let width = |send, receive| {
            let predicted = surface.predict(send, receive);
            predicted.high / predicted.low
        };
        assert!(width(32e3, 32e3) < width(90e3, 90e3));
        assert!(width(32e3, 32e3) < width(12e3, 90e3));
    }

    #[test]
    fn a_surface_that_the_model_does_not_describe_has_wide_intervals() {
        let sizes = [4e3, 8e3, 16e3, 32e3, 64e3];
        let wild = |send: f64, receive: f64| {
            truth(send, receive) * if (send * 7.0 + receive) % 3e3 > 1.5e3 { 3.0 } else { 1.0 }
        };
        let wild = points(&sizes, wild);
        let surface = Surface::fit(&wild, Some(0.01)).unwrap();
        let predicted = surface.predict(11e3, 45e3);
        assert!(predicted.high / predicted.low > 2.0, "{predicted:?}");
        let score = Surface::score(&wild, Some(0.01)).unwrap();
        assert!(score.within * 10 >= score.cells * 7, "{score:?}");
        assert!(score.median_error > 0.2, "{score:?}");
    }

    #[test]
    fn held_back_cells_score_the_model() {
        let sizes = [4e3, 8e3, 16e3, 32e3, 64e3, 128e3];
        let score = Surface::score(&points(&sizes, truth), None).unwrap();
        assert_eq!(score.cells, 36);
        assert!(score.within >= 32 && score.median_error < 0.1, "{score:?}");
    }

    #[test]
    fn too_few_cells_predict_nothing() {
        assert!(Surface::fit(&points(&[4e3, 8e3], truth), None).is_none());
        let dead = points(&[4e3, 8e3, 16e3], |_, _| 0.0);
        assert!(
            Surface::fit(&dead, None).is_none(),
            "a cell that carried nothing has no logarithm"
        );
    }
}
