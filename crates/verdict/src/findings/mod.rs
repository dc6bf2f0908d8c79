//! The findings of a sweep. Each module answers one question about the sweep.

mod best;
mod drift;
mod epochs;
mod limits;
mod notch;
mod precision;
mod predicted;
mod quality;
mod ridge;
mod saturation;
mod timer;

use crate::finding::Finding;
use crate::sweep::Sweep;

/// Returns all findings about a sweep: first the results, then the restrictions of their validity.
/// If the sweep is contended, its results mean nothing, so a single finding that says so replaces
/// them.
#[must_use]
pub fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    if let Some(contended) = precision::contended(sweep) {
        return std::iter::once(contended).chain(quality::findings(sweep)).collect();
    }
    let questions: [fn(&Sweep<'_>) -> Vec<Finding>; 11] = [
        precision::findings,
        limits::findings,
        predicted::findings,
        best::findings,
        ridge::findings,
        saturation::findings,
        notch::findings,
        timer::findings,
        epochs::findings,
        drift::findings,
        quality::findings,
    ];
    questions.iter().flat_map(|question| question(sweep)).collect()
}
