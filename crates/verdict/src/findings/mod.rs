//! The findings of a sweep, one question a file.

mod best;
mod drift;
mod notch;
mod quality;
mod ridge;
mod saturation;
mod timer;

use crate::finding::Finding;
use crate::sweep::Sweep;

/// Returns all findings: the results, then the limits of their validity.
#[must_use]
pub fn findings(sweep: &Sweep<'_>) -> Vec<Finding> {
    let questions: [fn(&Sweep<'_>) -> Vec<Finding>; 7] = [
        best::findings,
        ridge::findings,
        saturation::findings,
        notch::findings,
        timer::findings,
        drift::findings,
        quality::findings,
    ];
    questions.iter().flat_map(|question| question(sweep)).collect()
}
