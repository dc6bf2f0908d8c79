//! linerate's TCP as one end of a transfer: the source, the sink, and the parts that source and
//! sink share.

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
pub(crate) use sink::{ReadResult, Sink};
pub(crate) use source::{Source, WriteResult};
pub(crate) use transfer::Transfer;
pub(crate) use wait::{LinkWaiter, max_polls};
pub(crate) use wrapped_link::{WrappedLink, Wrapping};
