//! Parameters from TOML files. Every number has a unit, a source and a physical range. A number
//! that was fitted to measurements has a mark.

mod error;
mod place;
mod setting;
mod settings;

pub use error::ParameterError;
pub use place::Place;
pub use setting::{Number, Setting};
pub use settings::Settings;

pub(crate) use settings::Section;
