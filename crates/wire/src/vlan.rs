//! VLAN tags (IEEE 802.1Q).

use crate::EtherType;
use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// A VLAN tag: the priority of a frame and the ID of its VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// The `EtherType` that marks the tag. Invariant: [`EtherType::is_vlan`].
    kind: EtherType,
    control: u16,
}

impl VlanTag {
    /// The length of a tag in bytes.
    pub const LENGTH: usize = 4;
    /// The highest priority.
    pub const MAX_PRIORITY: u8 = 7;
    /// The largest VLAN ID. IEEE 802.1Q reserves it, but it can be received.
    pub const MAX_ID: u16 = 4_095;

    /// Creates a customer tag. Returns `None` if the priority exceeds 7 or the ID 4,095.
    #[must_use]
    pub const fn new(priority: u8, id: u16) -> Option<Self> {
        if priority > Self::MAX_PRIORITY || id > Self::MAX_ID {
            return None;
        }
        // A cast, because `From` is not `const`.
        Some(Self { kind: EtherType::VLAN, control: (priority as u16) << 13 | id })
    }

    /// Returns the bytes of the tag, which follow the source address of a frame.
    #[must_use]
    pub const fn bytes(self) -> [u8; Self::LENGTH] {
        let ([kind_0, kind_1], [high, low]) =
            (self.kind.number().to_be_bytes(), self.control.to_be_bytes());
        [kind_0, kind_1, high, low]
    }

    /// Creates a tag from a frame. Returns `None` if `kind` is not the `EtherType` of a tag.
    pub(crate) const fn read(kind: EtherType, control: u16) -> Option<Self> {
        if kind.is_vlan() { Some(Self { kind, control }) } else { None }
    }

    /// Turns the tag into an outer tag of a provider (IEEE 802.1ad).
    #[must_use]
    pub const fn as_service_tag(self) -> Self {
        Self { kind: EtherType::SERVICE_VLAN, ..self }
    }

    /// Returns the `EtherType` that marks the tag.
    #[must_use]
    pub const fn kind(self) -> EtherType {
        self.kind
    }

    /// Returns the priority from 0 to 7. Priority 1 is lower than 0; the other priorities rise with
    /// their numbers.
    #[must_use]
    pub const fn priority(self) -> u8 {
        self.control.to_be_bytes()[0] >> 5
    }

    /// May a congested bridge drop this frame before others (DEI)?
    #[must_use]
    pub const fn is_drop_eligible(self) -> bool {
        self.control & 0x1000 != 0
    }

    /// Returns the VLAN ID; 0 if the tag carries a priority only.
    #[must_use]
    pub const fn id(self) -> u16 {
        self.control & Self::MAX_ID
    }

    /// Returns the two bytes after the `EtherType`: priority, drop eligibility and VLAN ID.
    pub(crate) const fn control(self) -> u16 {
        self.control
    }
}

/// Parses `ID` or `ID:PRIORITY`, and rejects reserved IDs.
impl FromStr for VlanTag {
    type Err = ParseVlanError;

    fn from_str(text: &str) -> Result<Self, ParseVlanError> {
        let (id, priority) = text.split_once(':').unwrap_or((text, "0"));
        let id = id.parse().ok().filter(|id| (1..Self::MAX_ID).contains(id));
        let tag = id.zip(priority.parse().ok()).and_then(|(id, priority)| Self::new(priority, id));
        tag.ok_or(ParseVlanError)
    }
}

/// Formats the tag as `ID` or `ID:PRIORITY`. Parsing the text gives an equal tag.
impl fmt::Display for VlanTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.priority() {
            0 => write!(f, "{}", self.id()),
            priority => write!(f, "{}:{priority}", self.id()),
        }
    }
}

/// The error for text that is not a VLAN. IEEE 802.1Q reserves the IDs 0 (no VLAN) and 4,095.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "write the ID of a VLAN from 1 to 4094, with a priority from 0 to 7 if needed: 100 or 100:5"
)]
pub struct ParseVlanError;

/// The VLAN tags of a frame, outer tag first: none, a customer tag, or a provider tag and a
/// customer tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTags {
    outer: Option<VlanTag>,
    /// The inner tag. Invariant: `None` if there is no outer tag.
    inner: Option<VlanTag>,
}

impl VlanTags {
    /// The tags of an untagged frame: none.
    pub const NONE: Self = Self { outer: None, inner: None };
    /// The maximum number of tags that are parsed. If a frame has more, the others remain in its
    /// payload, and the frame's [`EtherType`] is that of a tag.
    pub const MOST: usize = 2;

    /// Creates the tags of a frame with a single tag.
    #[must_use]
    pub const fn one(tag: VlanTag) -> Self {
        Self { outer: Some(tag), inner: None }
    }

    /// Creates the tags of a frame with a provider tag before a customer tag.
    #[must_use]
    pub const fn stacked(outer: VlanTag, inner: VlanTag) -> Self {
        Self { outer: Some(outer), inner: Some(inner) }
    }

    /// Returns the tags, the outer one first.
    pub fn iter(self) -> impl Iterator<Item = VlanTag> {
        self.outer.into_iter().chain(self.inner)
    }

    /// Returns the length of all tags together, in bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        VlanTag::LENGTH * (self.outer.is_some() as usize + self.inner.is_some() as usize)
    }

    /// Does the frame belong to no VLAN, because it is untagged or its tags carry priorities only?
    #[must_use]
    pub fn is_untagged(self) -> bool {
        self.iter().all(|tag| tag.id() == 0)
    }
}

/// Appends tags, the outer one first. A third tag and all later tags are ignored.
impl Extend<VlanTag> for VlanTags {
    fn extend<I: IntoIterator<Item = VlanTag>>(&mut self, tags: I) {
        for tag in tags {
            if self.outer.is_none() {
                self.outer = Some(tag);
            } else {
                self.inner.get_or_insert(tag);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn priority_and_id_are_independent() {
        let tag = VlanTag::new(5, 1_234).unwrap();
        assert_eq!((tag.priority(), tag.is_drop_eligible(), tag.id()), (5, false, 1_234));
        assert!(VlanTag::new(8, 1).is_none() && VlanTag::new(0, 4_096).is_none());
    }

    #[test]
    fn a_vlan_is_parsed_as_it_is_printed() {
        for text in ["1", "100:5", "4094:7"] {
            assert_eq!(text.parse::<VlanTag>().unwrap().to_string(), text);
        }
        assert_eq!("7:0".parse::<VlanTag>().unwrap().to_string(), "7");
        for text in ["", "0", "4095", "4096", "-1", "x", "1:", "1:8", "1:x", ":5"] {
            assert_eq!(text.parse::<VlanTag>(), Err(ParseVlanError), "{text}");
        }
        assert_eq!("258:5".parse::<VlanTag>().unwrap().bytes(), [0x81, 0, 0xa1, 2]);
    }

    #[test]
    fn a_tag_with_only_a_priority_leaves_the_frame_untagged() {
        assert!(VlanTags::NONE.is_untagged());
        assert!(VlanTags::one(VlanTag::new(7, 0).unwrap()).is_untagged());
        assert!(!VlanTags::one(VlanTag::new(0, 1).unwrap()).is_untagged());
    }
}
