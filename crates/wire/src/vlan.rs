//! VLAN tags (IEEE 802.1Q).

use crate::EtherType;

/// A VLAN tag: the priority of a frame and the ID of its VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// Invariant: [`EtherType::is_vlan`].
    kind: EtherType,
    control: u16,
}

impl VlanTag {
    /// The length of a tag in bytes.
    pub const LENGTH: usize = 4;
    /// The highest priority.
    pub const MAX_PRIORITY: u8 = 7;
    /// The largest VLAN ID; 4,095 is reserved but can arrive.
    pub const MAX_ID: u16 = 4_095;

    /// Creates a customer tag. Returns `None` if the priority exceeds 7 or the ID 4,095.
    #[must_use]
    pub const fn new(priority: u8, id: u16) -> Option<Self> {
        if priority > Self::MAX_PRIORITY || id > Self::MAX_ID {
            return None;
        }
        // A widening cast: `From` is not `const`.
        Some(Self { kind: EtherType::VLAN, control: (priority as u16) << 13 | id })
    }

    /// Creates a received tag. Returns `None` if `kind` is not the `EtherType` of a tag.
    pub(crate) const fn read(kind: EtherType, control: u16) -> Option<Self> {
        if kind.is_vlan() { Some(Self { kind, control }) } else { None }
    }

    /// Turns the tag into the outer tag of a provider (IEEE 802.1ad).
    #[must_use]
    pub const fn as_service_tag(self) -> Self {
        Self { kind: EtherType::SERVICE_VLAN, ..self }
    }

    /// Returns the `EtherType` that marks the tag.
    #[must_use]
    pub const fn kind(self) -> EtherType {
        self.kind
    }

    /// Returns the priority from 0 to 7. Priority 1 is lower than 0; the others rise with the
    /// number.
    #[must_use]
    pub const fn priority(self) -> u8 {
        self.control.to_be_bytes()[0] >> 5
    }

    /// May a congested bridge drop this frame before others?
    #[must_use]
    pub const fn is_drop_eligible(self) -> bool {
        self.control & 0x1000 != 0
    }

    /// Returns the VLAN ID; 0 if the tag carries only a priority.
    #[must_use]
    pub const fn id(self) -> u16 {
        self.control & Self::MAX_ID
    }

    /// Returns the two bytes after the `EtherType`.
    pub(crate) const fn control(self) -> u16 {
        self.control
    }
}

/// The tags of a frame, outer tag first: none, one customer tag, or a provider tag and a customer
/// tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTags {
    outer: Option<VlanTag>,
    /// Invariant: none if there is no outer tag.
    inner: Option<VlanTag>,
}

impl VlanTags {
    /// No tag.
    pub const NONE: Self = Self { outer: None, inner: None };
    /// The number of tags that are parsed. Further ones remain in the payload, and the frame's
    /// [`EtherType`] is that of a tag.
    pub const MOST: usize = 2;

    /// Creates a single tag.
    #[must_use]
    pub const fn one(tag: VlanTag) -> Self {
        Self { outer: Some(tag), inner: None }
    }

    /// Creates a provider tag around a customer tag.
    #[must_use]
    pub const fn stacked(outer: VlanTag, inner: VlanTag) -> Self {
        Self { outer: Some(outer), inner: Some(inner) }
    }

    /// Returns the tags, the outer one first.
    pub fn iter(self) -> impl Iterator<Item = VlanTag> {
        self.outer.into_iter().chain(self.inner)
    }

    /// Returns the length of the tags in bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        VlanTag::LENGTH * (self.outer.is_some() as usize + self.inner.is_some() as usize)
    }

    /// Does the frame belong to no VLAN? It is untagged, or its tags carry only priorities.
    #[must_use]
    pub fn is_untagged(self) -> bool {
        self.iter().all(|tag| tag.id() == 0)
    }
}

/// Appends tags from the outside in, and ignores those after the second.
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
    use super::*;

    #[test]
    fn priority_and_id_are_independent() {
        let tag = VlanTag::new(5, 1_234).unwrap();
        assert_eq!((tag.priority(), tag.is_drop_eligible(), tag.id()), (5, false, 1_234));
        assert!(VlanTag::new(8, 1).is_none() && VlanTag::new(0, 4_096).is_none());
    }

    #[test]
    fn a_tag_with_only_a_priority_leaves_the_frame_untagged() {
        assert!(VlanTags::NONE.is_untagged());
        assert!(VlanTags::one(VlanTag::new(7, 0).unwrap()).is_untagged());
        assert!(!VlanTags::one(VlanTag::new(0, 1).unwrap()).is_untagged());
    }
}
