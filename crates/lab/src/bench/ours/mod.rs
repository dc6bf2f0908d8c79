//! linerate's own TCP as one end of a transfer: the source, the sink, and what both need.

mod counters;
mod dressing;
mod end;
mod rules;
mod sink;
mod source;
mod transfer;
mod watch;

pub(super) use dressing::{Dressed, Dressing};
pub(super) use end::End;
pub(super) use rules::Rules;
pub(super) use sink::{Sink, Taken};
pub(super) use source::{Given, Source};
pub(super) use transfer::Transfer;
pub(super) use watch::{Watch, most_looks};
