//! Predictions of the throughput of cells that were not measured.
//!
//! The table of cells, with a send buffer for each row and a receive buffer for each column, is
//! described as a surface. A model with four parameters gives its shape. The smaller buffer
//! determines the window of the transfer. The window divided by the round-trip time is the rate, up
//! to the capacity of the path.
//!
//! Deviations from the model are interpolated between measured cells by a Gaussian process. The
//! variance of this process gives the uncertainty of a prediction. To check the intervals, each
//! measured cell is predicted from all other cells. All intervals are widened by the factor with
//! which the 90 % intervals contain the rates of nine tenths of the measured cells.

use super::as_f64;
use super::sample::median_of_sorted;

/// Minimum number of measured cells for a prediction: four for the parameters of the model, and two
/// more to judge the fit.
pub const FEWEST_CELLS: usize = 6;
/// Half-width of a 95 % interval, in standard deviations.
const WIDTH: f64 = 1.96;
/// Assumed scatter of the runs of one cell, as the standard deviation of the natural logarithm of
/// their rates. It is used if no cell was measured twice, so that the scatter is unknown.
const USUAL_NOISE: f64 = 0.03;
/// Minimum standard deviation that is assumed for the cells' deviations from the model,
/// log(measured rate / rate of the model).
const MIN_DEVIATION: f64 = 0.02;
/// Exponent of the power mean that approximates the minimum of the two buffer sizes by a smooth
/// function. A larger exponent gives a closer approximation.
const SHARPNESS: f64 = 6.0;
/// Candidate length scales of the Gaussian process. Cells that are closer together than the length
/// scale deviate from the model by similar amounts. Distances between cells are differences of the
/// natural logarithms of their buffer sizes.
const LENGTHS: [f64; 3] = [0.35, 0.7, 1.4];
/// Maximum number of cells to which the surface is fitted, because the computing time grows with
/// the cube of that number. If more cells were measured, only every n-th of them is used.
const MAX_CELLS: usize = 160;
/// Number of groups of cells in cross-validation. The cells of each group are predicted from the
/// cells of the other groups.
const HELD_BACK_EVERY: usize = 4;

/// A measured cell and its rate, as input of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfacePoint {
    /// Size of the send buffer in bytes.
    pub send: f64,
    /// Size of the receive buffer in bytes.
    pub receive: f64,
    /// Rate of the cell in bytes per second. A cell with rate 0 is ignored, because 0 has no
    /// logarithm.
    pub rate: f64,
}

/// The four parameters of the throughput model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceModel {
    /// Rate with unlimited buffers, in bytes per second.
    pub capacity: f64,
    /// Time in seconds from sending a byte until its acknowledgement makes room for another byte.
    /// It is the round-trip time that a small window shows, with which no queue builds up.
    pub round_trip: f64,
    /// Number of bytes of window that a byte of receive buffer provides, divided by the number that
    /// a byte of send buffer provides.
    pub receive_share: f64,
    /// Exponent that says how much sending at capacity overlaps with waiting for acknowledgements.
    /// With 1, the time of sending and the time of waiting add up. With a large exponent, the
    /// longer of the two times alone determines the rate.
    pub overlap: f64,
}

/// A predicted rate and its 95 % interval, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The predicted rate of the cell.
    pub rate: f64,
    /// Lower bound of the 95 % interval for the rate of one run.
    pub low: f64,
    /// Upper bound of the 95 % interval for the rate of one run.
    pub high: f64,
}

/// The accuracy of the predictions of measured cells, by cross-validation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfaceScore {
    /// Number of measured cells that were predicted from other cells.
    pub cells: usize,
    /// Number of these cells whose measured rate is within the predicted 95 % interval.
    pub within: usize,
    /// Median of the relative errors of the predicted rates: 0.1 is an error of 10 %.
    pub median_error: f64,
}

/// A throughput model that is fitted to measured cells and predicts the rates of other cells.
#[derive(Clone, Debug)]
pub struct Surface {
    model: SurfaceModel,
    points: Vec<SurfacePoint>,
    /// Cholesky factor of the covariance matrix: the lower triangle, row by row.
    factor: Vec<Vec<f64>>,
    /// The inverse covariance matrix multiplied by the vector of the cells' deviations from the
    /// model.
    weights: Vec<f64>,
    kernel: Kernel,
    /// Standard deviation of the natural logarithm of the rates of one cell's runs.
    noise: f64,
    /// Factor by which the half-widths of predicted intervals are multiplied; at least 1.
    widening: f64,
}

/// The covariance function of deviations from the model. The covariance of two cells decreases with
/// their distance.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    /// Variance of log(measured rate / rate of the model), taken over all measured cells.
    variance: f64,
    /// Length scale: one of [`LENGTHS`].
    length: f64,
}

impl Kernel {
    /// Returns the covariance between two cells' deviations from the model.
    fn of(self, one: &SurfacePoint, other: &SurfacePoint) -> f64 {
        let [x, y] = [one.send / other.send, one.receive / other.receive].map(f64::ln);
        self.variance * (-(x * x + y * y) / (2.0 * self.length * self.length)).exp()
    }
}

impl SurfaceModel {
    /// Returns the modelled rate in bytes per second, for buffers of `send` and `receive` bytes.
    #[must_use]
    pub fn rate(&self, send: f64, receive: f64) -> f64 {
        let window = smooth(send, receive * self.receive_share, -SHARPNESS);
        let by_window = window / self.round_trip;
        smooth(by_window, self.capacity, -self.overlap)
    }

    /// Fits the parameters to the logarithms of the rates by least squares. The search changes one
    /// parameter at a time.
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

    /// Returns log(measured rate / rate of the model) of a cell.
    fn deviation(&self, point: &SurfacePoint) -> f64 {
        (point.rate / self.rate(point.send, point.receive)).ln()
    }

    /// Returns the sum of the squared deviations of all cells from the model; infinity if the
    /// parameters give no finite sum, so that the search rejects them.
    fn squares(&self, points: &[SurfacePoint]) -> f64 {
        let squares: f64 = points.iter().map(|point| self.deviation(point).powi(2)).sum();
        if squares.is_finite() { squares } else { f64::INFINITY }
    }
}

/// Returns a smooth approximation of the smaller of two positive numbers, if `exponent` is a large
/// negative number. It is their power mean with this exponent, except that the sum of the powers is
/// not divided by 2.
fn smooth(one: f64, other: f64, exponent: f64) -> f64 {
    let smaller = one.min(other);
    smaller
        * ((one / smaller).powf(exponent) + (other / smaller).powf(exponent)).powf(1.0 / exponent)
}

impl Surface {
    /// Fits a surface to measured cells. `noise` is the standard deviation of the natural logarithm
    /// of the rates of one cell's runs; `None` if no cell was measured twice.
    ///
    /// Returns `None` if fewer than [`FEWEST_CELLS`] cells have a rate above 0, or if the
    /// covariance matrix is not positive definite.
    #[must_use]
    pub fn fit(points: &[SurfacePoint], noise: Option<f64>) -> Option<Self> {
        let points = points.iter().copied().filter(|point| point.rate > 0.0);
        let points: Vec<SurfacePoint> = points.collect();
        let every = points.len().div_ceil(MAX_CELLS).max(1);
        let points: Vec<SurfacePoint> = points.into_iter().step_by(every).collect();
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

    /// Creates a surface with the covariance function `kernel`. Returns `None` if the covariance
    /// matrix of the cells is not positive definite.
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

    /// Returns the factor by which the half-widths of predicted intervals must be multiplied; at
    /// least 1. To find it, each cell is predicted from all other cells. With this factor, the 90 %
    /// intervals of nine tenths of these predictions contain the measured rate.
    fn needed_widening(&self) -> f64 {
        // Half-width of a 90 % interval of the normal distribution, in standard deviations.
        const NINE_TENTHS: f64 = 1.645;
        let count = self.points.len();
        let mut errors: Vec<f64> = (0..count)
            .map(|index| {
                let mut unit = vec![0.0; count];
                unit[index] = 1.0;
                // The error of predicting a cell from all other cells has a closed form. The
                // formula gives the error in standard deviations, without fitting a surface to the
                // other cells.
                let inverse = backward(&self.factor, &forward(&self.factor, &unit))[index];
                self.weights[index].abs() / inverse.sqrt()
            })
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        (errors[(count * 9 / 10).min(count - 1)] / NINE_TENTHS).max(1.0)
    }

    /// Returns the model with its fitted parameters.
    #[must_use]
    pub const fn model(&self) -> &SurfaceModel {
        &self.model
    }

    /// Predicts the rate of one run with buffers of `send` and `receive` bytes, and its 95 %
    /// interval.
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

    /// Scores the model by cross-validation. The measured cells are divided into groups, and each
    /// cell is predicted once from the cells of the other groups. Returns `None` if there are too
    /// few cells.
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
        (!errors.is_empty()).then(|| SurfaceScore {
            cells: errors.len(),
            within,
            median_error: median_of_sorted(&errors),
        })
    }
}

/// Returns the scalar product of two vectors. The longer vector is cut to the length of the shorter
/// one.
fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Returns the Cholesky factor of a symmetric matrix, as the rows of a lower triangular matrix.
/// `entry` returns the matrix element of a row and a column. Returns `None` if the matrix is not
/// positive definite.
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

/// Solves the linear equations `factor` · x = `right` for a lower triangular matrix.
fn forward(factor: &[Vec<f64>], right: &[f64]) -> Vec<f64> {
    let mut solved: Vec<f64> = Vec::with_capacity(right.len());
    for (line, value) in factor.iter().zip(right) {
        let sum: f64 = line.iter().zip(&solved).map(|(one, other)| one * other).sum();
        solved.push((value - sum) / line[line.len() - 1]);
    }
    solved
}

/// Solves the linear equations `factor`ᵀ · x = `right`, with the transpose of a lower triangular
/// matrix.
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

    /// Returns the true rate of a path with 50 Mb/s and a round-trip time of 20 ms. The window is
    /// the send buffer or two thirds of the receive buffer, whichever is smaller.
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
    fn the_score_of_an_even_number_of_cells_is_between_the_middle_errors() {
        let cells = &points(&[4e3, 16e3, 64e3], truth)[..8];
        let error = |held: usize| {
            let rest = cells.iter().enumerate().filter(|(index, _)| index % 4 != held % 4);
            let rest: Vec<SurfacePoint> = rest.map(|(_, cell)| *cell).collect();
            let SurfacePoint { send, receive, rate } = cells[held];
            (Surface::fit(&rest, None).unwrap().predict(send, receive).rate / rate - 1.0).abs()
        };
        let mut errors: Vec<f64> = (0..cells.len()).map(error).collect();
        errors.sort_by(f64::total_cmp);
        assert!(errors[3] < errors[4], "{errors:?}");
        let score = Surface::score(cells, None).unwrap();
        assert_eq!(score.median_error, f64::midpoint(errors[3], errors[4]));
    }

    #[test]
    fn cells_that_carried_nothing_do_not_thin_out_the_others() {
        let sizes: Vec<f64> = (1..=13).map(|packets| f64::from(packets) * 1_448.0).collect();
        let all = points(&sizes, truth);
        let without_a_row =
            points(&sizes, |send, receive| if send < 1_449.0 { 0.0 } else { truth(send, receive) });
        let fitted = |cells: &[SurfacePoint]| Surface::fit(cells, None).unwrap().points.len();
        assert_eq!((fitted(&all), fitted(&without_a_row)), (85, 156));
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
