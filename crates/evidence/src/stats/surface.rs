//! The throughput of cells that were not measured, from those that were.
//!
//! A model with four parameters describes the surface: a path with a capacity and a round trip
//! carries a window of the smaller buffer, of which each end uses a share. What the model does not
//! explain is interpolated between the measured cells by a Gaussian process, whose variance is the
//! uncertainty of a prediction. Intervals are widened until they cover the measured cells, each
//! predicted without itself.

use super::as_f64;

/// Fewest cells from which others are predicted: those of four parameters, and some to judge them.
pub const FEWEST_CELLS: usize = 6;
/// Half-width of a 95 % interval, in standard deviations.
const WIDTH: f64 = 1.96;
/// Deviation of equal runs, if no cell was measured twice.
const USUAL_NOISE: f64 = 0.03;
/// Minimum deviation of the surface from the model.
const MIN_DEVIATION: f64 = 0.02;
/// Exponent of the smooth minimum of the two buffers.
const SHARPNESS: f64 = 6.0;
/// Distances, in logarithms of a buffer, over which deviations from the model are similar.
const LENGTHS: [f64; 3] = [0.35, 0.7, 1.4];
/// Maximum number of cells of a fit, whose time grows with their cube. More are thinned evenly.
const MAX_CELLS: usize = 160;
/// One cell of this many is held back to score the model.
const HELD_BACK_EVERY: usize = 4;

/// A measured cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfacePoint {
    /// The send buffer in bytes.
    pub send: f64,
    /// The receive buffer in bytes.
    pub receive: f64,
    /// The rate in bytes per second, above zero.
    pub rate: f64,
}

/// The parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceModel {
    /// The rate with unlimited buffers, in bytes per second.
    pub capacity: f64,
    /// The time from a byte to the acknowledgement that makes room for another one, in seconds,
    /// while the window is small.
    pub round_trip: f64,
    /// The window that a byte of the receive buffer provides, over that of the send buffer.
    pub receive_share: f64,
    /// How independent the costs of data are of the round trip: 1 if the ends work in turn, large
    /// if they overlap.
    pub overlap: f64,
}

/// A predicted rate, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The rate.
    pub rate: f64,
    /// Lower end of the 95 % interval of a run.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The quality of predictions of cells that were measured and held back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceScore {
    /// Number of cells held back.
    pub cells: usize,
    /// Number of these cells whose rates lie within their predicted intervals.
    pub within: usize,
    /// Median of the relative errors.
    pub median_error: f64,
}

/// A fitted surface.
#[derive(Clone, Debug)]
pub struct Surface {
    model: SurfaceModel,
    points: Vec<SurfacePoint>,
    /// The lower triangle of the Cholesky factor of the covariance, row by row.
    factor: Vec<Vec<f64>>,
    /// The inverse of the covariance times the deviations from the model.
    weights: Vec<f64>,
    kernel: Kernel,
    noise: f64,
    /// Factor of the deviations of predictions.
    widening: f64,
}

/// The covariance of deviations from the model.
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
    /// Returns the rate with these buffers, in bytes.
    #[must_use]
    pub fn rate(&self, send: f64, receive: f64) -> f64 {
        let window = smooth(send, receive * self.receive_share, -SHARPNESS);
        let by_window = window / self.round_trip;
        smooth(by_window, self.capacity, -self.overlap)
    }

    /// Fits the parameters to the logarithms of the rates, by a search along each of them.
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

    /// Returns the model of these logarithms of the parameters.
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

/// Returns the power mean without its division: near the minimum for a large negative exponent.
fn smooth(one: f64, other: f64, exponent: f64) -> f64 {
    let smaller = one.min(other);
    smaller
        * ((one / smaller).powf(exponent) + (other / smaller).powf(exponent)).powf(1.0 / exponent)
}

impl Surface {
    /// Fits a surface to measured cells. `noise` is the deviation of the logarithms of equal runs,
    /// if it is known. Returns `None` for fewer than [`FEWEST_CELLS`] cells.
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

    /// Returns the surface with this kernel; `None` if the covariance is not positive.
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

    /// Returns the factor by which intervals must be wider, so that nine of ten measured cells are
    /// in those of nine tenths that are predicted without them.
    fn needed_widening(&self) -> f64 {
        const NINE_TENTHS: f64 = 1.645;
        let count = self.points.len();
        let mut errors: Vec<f64> = (0..count)
            .map(|index| {
                let mut unit = vec![0.0; count];
                unit[index] = 1.0;
                // The prediction of a cell from all others has a closed form.
                let inverse = backward(&self.factor, &forward(&self.factor, &unit))[index];
                self.weights[index].abs() / inverse.sqrt()
            })
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        (errors[(count * 9 / 10).min(count - 1)] / NINE_TENTHS).max(1.0)
    }

    /// Returns the parameters of the model.
    #[must_use]
    pub const fn model(&self) -> &SurfaceModel {
        &self.model
    }

    /// Returns the predicted rate with these buffers, in bytes.
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

    /// Scores predictions of cells that are held back from the fit, each once.
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

/// Returns the product of two vectors, up to the end of the shorter one.
fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Returns the Cholesky factor of a symmetric matrix; `None` if it is not positive.
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

/// Solves the lower triangular system of a factor.
fn forward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(right.len());
    for (line, value) in factor.iter().zip(right) {
        let sum: f64 = line.iter().zip(&solved).map(|(one, other)| one * other).sum();
        solved.push((value - sum) / line[line.len() - 1]);
    }
    solved
}

/// Solves the upper triangular system of the transposed factor.
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

    /// A path of 50 Mb/s and 20 ms, whose receiver's window is two thirds of its buffer.
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
