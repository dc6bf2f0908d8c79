//! Tools for the simulator: loading scenario files, writing outcomes as text, JSON, SVG and
//! captures, and repeating the measurement series of 1988.
//!
//! The simulator itself uses no files and no threads. This crate adds both.

#![forbid(unsafe_code)]

mod beside_published;
mod capture;
mod controls;
mod controls_report;
mod describe;
mod load;
mod night;
mod night_report;
mod published;
mod record;
mod timeline_record;
mod timeline_svg;
mod transfers;

pub use beside_published::beside_published;
pub use capture::FrameWriter;
pub use controls::{CONTROLS, Control, ControlColumn, ControlOutcome, PACKETS};
pub use controls_report::controls_text;
pub use describe::describe;
pub use load::{ScenarioError, load};
pub use night::{CellOutcome, ColumnOutcome, Night, NightOptions};
pub use night_report::{night_json, night_text};
pub use published::{COLUMNS, Column, MOST, wire_by_formula};
pub use record::Record;
pub use timeline_record::TimelineRecord;
pub use timeline_svg::timeline_svg;

pub use linerate_sim::{
    Blueprint, Keep, Outcome, Scenario, Setting, Settings, Timeline, TransferOptions, Window,
};
