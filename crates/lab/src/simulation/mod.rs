//! Worlds in virtual time: scenarios from files, runs of them, and what they say.

mod beside;
mod controls;
mod controls_report;
mod figures;
mod load;
mod night;
mod night_report;
mod picture;
mod published;
mod record;
mod transfers;

pub use beside::beside_published;
pub use controls::{CONTROLS, Control, ControlColumn, ControlOutcome, PACKETS};
pub use controls_report::controls_text;
pub use figures::describe;
pub use load::{ScenarioError, load, of_scenario};
pub use night::{CellOutcome, ColumnOutcome, Night, NightOptions};
pub use night_report::{night_json, night_text};
pub use picture::timeline_svg;
pub use published::{COLUMNS, Column, MOST, wire_by_formula};
pub use record::{FrameWriter, Record, TimelineRecord};

pub use linerate_sim::{
    Blueprint, Keep, Outcome, Scenario, Setting, Settings, Timeline, TransferOptions, Window,
};
