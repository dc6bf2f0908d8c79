//! linerate's own TCP as one end of a transfer: the source, the sink, and what both need.

mod counters;
mod host;
mod rules;
mod sink;
mod source;
mod transfer;
mod wait;
mod wrapped_link;

pub(crate) use host::End;
pub(crate) use rules::Rules;
pub(crate) use sink::{Sink, Taken};
pub(crate) use source::{Given, Source};
pub(crate) use transfer::Transfer;
pub(crate) use wait::{Watch, most_looks};
pub(crate) use wrapped_link::{WrappedLink, Wrapping};
