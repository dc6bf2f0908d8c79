//! Sizes of socket buffers, in packets of one MSS or in bytes.

use linerate_units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use thiserror::Error;

/// The size of one socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferSize {
    /// A number of packets, each of one MSS.
    Packets(NonZeroU32),
    /// A number of bytes.
    Bytes(NonZeroU64),
}

impl BufferSize {
    /// Returns the buffer size in bytes. A packet counts as `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u32) -> u64 {
        match self {
            Self::Packets(packets) => u64::from(packets.get()) * u64::from(mss),
            Self::Bytes(bytes) => bytes.get(),
        }
    }

    /// Returns the buffer size in packets; `None` if the size is given in bytes.
    #[must_use]
    pub const fn packets(self) -> Option<u32> {
        match self {
            Self::Packets(packets) => Some(packets.get()),
            Self::Bytes(_) => None,
        }
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => packets.fmt(f),
            Self::Bytes(bytes) => Bytes::new(bytes.get()).fmt(f),
        }
    }
}

/// A non-empty list of buffer sizes in ascending order, without duplicates. Either all sizes are in
/// packets, or all are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<BufferSize>", into = "Vec<BufferSize>")]
pub struct BufferList(Vec<BufferSize>);

impl BufferList {
    /// Maximum number of sizes in a list. A longer list is refused, because it would need so many
    /// runs that it is probably a mistake.
    pub const MOST: usize = 1_024;

    /// Returns the list of the sizes 1, 2, 3 … `most` packets. If `most` exceeds
    /// [`BufferList::MOST`], the list ends there.
    #[must_use]
    pub fn up_to(most: NonZeroU32) -> Self {
        let most = u64::from(most.get()).min(Self::MOST as u64);
        Self((1..=most).filter_map(packets).collect())
    }

    /// Returns the sizes in ascending order.
    #[must_use]
    pub fn sizes(&self) -> &[BufferSize] {
        &self.0
    }
}

impl TryFrom<Vec<BufferSize>> for BufferList {
    type Error = ParseBuffersError;

    fn try_from(mut sizes: Vec<BufferSize>) -> Result<Self, ParseBuffersError> {
        sizes.sort_unstable();
        let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
            return Err(ParseBuffersError::Empty);
        };
        if first.packets().is_some() != last.packets().is_some() {
            return Err(ParseBuffersError::Mixed);
        }
        if let Some(twice) = sizes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ParseBuffersError::Twice(twice[0].to_string()));
        }
        if sizes.len() > Self::MOST {
            return Err(ParseBuffersError::TooMany(sizes.len()));
        }
        Ok(Self(sizes))
    }
}

impl From<BufferList> for Vec<BufferSize> {
    fn from(list: BufferList) -> Self {
        list.0
    }
}

/// Parses a list of buffer sizes, whose items are separated by commas. An item is a size or a
/// range: `1..17` includes 1 and 17, `1..17/4` has a step of 4, and `4KiB..64KiB/4KiB` is in bytes.
/// A number without a unit counts packets.
impl FromStr for BufferList {
    type Err = ParseBuffersError;

    fn from_str(text: &str) -> Result<Self, ParseBuffersError> {
        let mut sizes = Vec::new();
        for item in text.split(',') {
            append_item(item.trim(), &mut sizes)?;
        }
        Self::try_from(sizes)
    }
}

/// The reason why a list of buffer sizes is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseBuffersError {
    /// An item of the list is empty.
    #[error("a buffer size is missing: write a list such as 1,2,4,8 or a range such as 1..17")]
    Empty,
    /// An item is neither a number of packets nor a number of bytes.
    #[error(
        "`{0}` is no buffer size: write a number of packets such as 4, bytes such as 64KiB, or a \
         range such as 1..17"
    )]
    NotASize(String),
    /// A size is zero.
    #[error("`{0}` is a buffer of zero bytes: the smallest is 1")]
    Zero(String),
    /// The first bound of a range is larger than its second bound, as in `17..1`.
    #[error("the range `{0}` is reversed: write the smaller end first")]
    Reversed(String),
    /// The step of a range is not a valid number, is zero, or has a unit that differs from that of
    /// the bounds: packets in place of bytes, or vice versa.
    #[error(
        "the step of `{0}` does not fit: write a range of packets as 1..17/4, one of bytes as \
         4KiB..64KiB/4KiB"
    )]
    Step(String),
    /// A range of bytes has no step. With a step of one, it would contain a size for every single
    /// byte.
    #[error("the range of bytes `{0}` needs a step: write it as 4KiB..64KiB/4KiB")]
    NoStep(String),
    /// The list contains sizes in packets and sizes in bytes. Such a list cannot be sorted, because
    /// the order of its sizes depends on the MSS.
    #[error(
        "packets and bytes are mixed in one list: give every size, or none, a suffix such as KiB"
    )]
    Mixed,
    /// A size occurs twice in the list. That would not measure its cells twice: the list only
    /// determines which cells are measured, and `--repeat` how often.
    #[error(
        "the buffer size {0} is listed twice: list it once and raise --repeat to measure it more \
         often"
    )]
    Twice(String),
    /// The list has more than [`BufferList::MOST`] sizes.
    #[error("{0} buffer sizes are too many, the most are {most}: take a larger step", 
        most = BufferList::MOST)]
    TooMany(usize),
}

/// Parses one item of a list (a single size or a range), and appends its sizes to `sizes`.
fn append_item(item: &str, sizes: &mut Vec<BufferSize>) -> Result<(), ParseBuffersError> {
    let Some((low, rest)) = item.split_once("..") else {
        sizes.push(parse_size(item)?);
        return Ok(());
    };
    let (high, step) = match rest.split_once('/') {
        Some((high, step)) => (high, Some(step)),
        None => (rest, None),
    };
    append_range(item, parse_size(low)?, parse_size(high)?, step, sizes)
}

/// Appends the sizes `low`, `low + step`, `low + 2 * step` … up to `high` to `sizes`. `item` is the
/// text of the range, which error messages quote.
fn append_range(
    item: &str,
    low: BufferSize,
    high: BufferSize,
    step: Option<&str>,
    sizes: &mut Vec<BufferSize>,
) -> Result<(), ParseBuffersError> {
    use BufferSize::{Bytes, Packets};
    let wrong_step = || ParseBuffersError::Step(item.to_owned());
    let step = step.map(parse_size).transpose().map_err(|_| wrong_step())?;
    let (step, size): (u64, SizeOf) = match (low, high, step) {
        (Packets(_), Packets(_), None) => (1, packets),
        (Packets(_), Packets(_), Some(Packets(step))) => (step.get().into(), packets),
        (Bytes(_), Bytes(_), Some(Bytes(step))) => (step.get(), bytes),
        (Bytes(low), Bytes(high), None) if low < high => {
            return Err(ParseBuffersError::NoStep(item.to_owned()));
        }
        (Bytes(_), Bytes(_), None) => (1, bytes),
        (Packets(_), Packets(_), _) | (Bytes(_), Bytes(_), _) => return Err(wrong_step()),
        _ => return Err(ParseBuffersError::Mixed),
    };
    let (low, high) = (low.bytes(1), high.bytes(1));
    if low > high {
        return Err(ParseBuffersError::Reversed(item.to_owned()));
    }
    let count = (high - low) / step + 1;
    match usize::try_from(count) {
        Ok(count) if count <= BufferList::MOST => {}
        too_many => return Err(ParseBuffersError::TooMany(too_many.unwrap_or(usize::MAX))),
    }
    sizes.extend((0..count).filter_map(|index| size(low + index * step)));
    Ok(())
}

/// A function that converts a number of packets or bytes to a buffer size. It returns `None` if the
/// number is zero or too large.
type SizeOf = fn(u64) -> Option<BufferSize>;

fn packets(count: u64) -> Option<BufferSize> {
    u32::try_from(count).ok().and_then(NonZeroU32::new).map(BufferSize::Packets)
}

fn bytes(count: u64) -> Option<BufferSize> {
    NonZeroU64::new(count).map(BufferSize::Bytes)
}

/// Parses one buffer size. A number with a unit counts bytes; a number without a unit counts
/// packets.
fn parse_size(text: &str) -> Result<BufferSize, ParseBuffersError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseBuffersError::Empty);
    }
    let not_a_size = || ParseBuffersError::NotASize(text.to_owned());
    let zero = || ParseBuffersError::Zero(text.to_owned());
    // A number with a decimal point but without a unit is refused, although the decimal part could
    // be rounded: `1.17` is probably a misspelt range `1..17`.
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        let count = text.parse::<u32>().map_err(|_| not_a_size())?;
        return NonZeroU32::new(count).map(BufferSize::Packets).ok_or_else(zero);
    }
    let amount = text.parse::<Bytes>().map_err(|_| not_a_size())?;
    NonZeroU64::new(amount.count()).map(BufferSize::Bytes).ok_or_else(zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, ParseBuffersError> {
        let list = text.parse::<BufferList>()?;
        Ok(list.sizes().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_range_includes_both_ends() {
        assert_eq!(read("1..17").unwrap().len(), 17);
        assert_eq!(read("3..3").unwrap(), ["3"]);
        assert_eq!(read("1..1024").unwrap().len(), BufferList::MOST);
        assert_eq!(read("1..1024,1025").unwrap_err(), ParseBuffersError::TooMany(1_025));
        assert_eq!(read("1..17/4").unwrap(), ["1", "5", "9", "13", "17"]);
        assert_eq!(read("4KiB..16KiB/4KiB").unwrap(), ["4 KiB", "8 KiB", "12 KiB", "16 KiB"]);
    }

    #[test]
    fn lists_are_sorted_and_may_hold_ranges() {
        assert_eq!(read("8,1..3,16").unwrap(), ["1", "2", "3", "8", "16"]);
        assert_eq!(read("64KiB, 1460B").unwrap(), ["1460 B", "64 KiB"]);
    }

    #[test]
    fn packets_become_bytes_by_the_segment_size() {
        let list = "2".parse::<BufferList>().unwrap();
        assert_eq!(list.sizes()[0].bytes(1_448), 2_896);
        assert_eq!(list.sizes()[0].packets(), Some(2));
    }

    #[test]
    fn invalid_lists_are_refused_with_a_remedy() {
        let refused = |text: &str| read(text).unwrap_err();
        assert_eq!(refused(""), ParseBuffersError::Empty);
        assert_eq!(refused("1,,2"), ParseBuffersError::Empty);
        assert_eq!(refused("1.."), ParseBuffersError::Empty);
        assert_eq!(refused("17..1"), ParseBuffersError::Reversed("17..1".into()));
        assert_eq!(refused("0..4"), ParseBuffersError::Zero("0".into()));
        assert_eq!(refused("0B"), ParseBuffersError::Zero("0B".into()));
        assert_eq!(refused("1..9/0"), ParseBuffersError::Step("1..9/0".into()));
        assert_eq!(refused("1..9/1KiB"), ParseBuffersError::Step("1..9/1KiB".into()));
        assert_eq!(refused("4KiB..64KiB/4"), ParseBuffersError::Step("4KiB..64KiB/4".into()));
        assert_eq!(refused("4KiB..64KiB"), ParseBuffersError::NoStep("4KiB..64KiB".into()));
        assert_eq!(refused("1..64KiB"), ParseBuffersError::Mixed);
        assert_eq!(refused("1,64KiB"), ParseBuffersError::Mixed);
        assert_eq!(refused("1..4,3"), ParseBuffersError::Twice("3".into()));
        assert_eq!(refused("1.17"), ParseBuffersError::NotASize("1.17".into()));
        assert_eq!(refused("1...17"), ParseBuffersError::NotASize(".17".into()));
        assert_eq!(refused("four"), ParseBuffersError::NotASize("four".into()));
        assert_eq!(refused("1..4294967295"), ParseBuffersError::TooMany(4_294_967_295));
        assert_eq!(refused("99999999999"), ParseBuffersError::NotASize("99999999999".into()));
    }
}
