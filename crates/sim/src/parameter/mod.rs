//! Numbers as data: each has a unit, a source and a physical range, and says whether it was tuned.

mod error;
mod place;
mod setting;
mod settings;

pub use error::ParameterError;
pub use place::Place;
pub use setting::{Number, Setting};
pub use settings::Settings;

pub(crate) use settings::Section;
