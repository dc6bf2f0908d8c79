//! Tags that say which virtual network a frame belongs to (IEEE 802.1Q).

use crate::EtherType;

/// A tag: the priority of the frame and the number of its virtual network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// Invariant: [`EtherType::is_vlan`].
    kind: EtherType,
    control: u16,
}

impl VlanTag {
    /// Bytes of a tag.
    pub const LENGTH: usize = 4;
    /// The greatest priority.
    pub const MAX_PRIORITY: u8 = 7;
    /// The greatest number of a network; 4,095 is reserved but may arrive.
    pub const MAX_ID: u16 = 4_095;

    /// An ordinary (customer) tag; none if the priority exceeds 7 or the number 4,095.
    #[must_use]
    pub const fn new(priority: u8, id: u16) -> Option<Self> {
        if priority > Self::MAX_PRIORITY || id > Self::MAX_ID {
            return None;
        }
        // A widening cast; `From` is no const function.
        Some(Self { kind: EtherType::VLAN, control: (priority as u16) << 13 | id })
    }

    /// The tag of a kind, as it was read; none if the kind is no tag's.
    pub(crate) const fn read(kind: EtherType, control: u16) -> Option<Self> {
        if kind.is_vlan() { Some(Self { kind, control }) } else { None }
    }

    /// The same tag as a provider's outer one (802.1ad).
    #[must_use]
    pub const fn as_service_tag(self) -> Self {
        Self { kind: EtherType::SERVICE_VLAN, ..self }
    }

    /// The number in front of the tag, which says that it is one.
    #[must_use]
    pub const fn kind(self) -> EtherType {
        self.kind
    }

    /// 0 to 7, where 1 is less than 0 and all others count up.
    #[must_use]
    pub const fn priority(self) -> u8 {
        self.control.to_be_bytes()[0] >> 5
    }

    /// May a congested bridge drop this frame before others?
    #[must_use]
    pub const fn is_drop_eligible(self) -> bool {
        self.control & 0x1000 != 0
    }

    /// The number of the virtual network; 0 if the tag gives nothing but a priority.
    #[must_use]
    pub const fn id(self) -> u16 {
        self.control & Self::MAX_ID
    }

    /// The two bytes behind [`VlanTag::kind`].
    pub(crate) const fn control(self) -> u16 {
        self.control
    }
}

/// The tags of a frame, the outer one first: none, one, or a provider's around a customer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTags {
    outer: Option<VlanTag>,
    /// Invariant: none without an outer one.
    inner: Option<VlanTag>,
}

impl VlanTags {
    /// No tag.
    pub const NONE: Self = Self { outer: None, inner: None };
    /// Tags that are read; a third one and those behind it are payload of an
    /// [`EtherType`] that is a tag's.
    pub const MOST: usize = 2;

    /// One tag.
    #[must_use]
    pub const fn one(tag: VlanTag) -> Self {
        Self { outer: Some(tag), inner: None }
    }

    /// A provider's tag around a customer's.
    #[must_use]
    pub const fn stacked(outer: VlanTag, inner: VlanTag) -> Self {
        Self { outer: Some(outer), inner: Some(inner) }
    }

    /// The tags, the outer one first.
    pub fn iter(self) -> impl Iterator<Item = VlanTag> {
        self.outer.into_iter().chain(self.inner)
    }

    /// Bytes that they take in the frame.
    #[must_use]
    pub const fn length(self) -> usize {
        VlanTag::LENGTH * (self.outer.is_some() as usize + self.inner.is_some() as usize)
    }

    /// Does the frame belong to the network without a number: is it untagged, or are its tags mere
    /// priorities?
    #[must_use]
    pub fn is_untagged(self) -> bool {
        self.iter().all(|tag| tag.id() == 0)
    }
}

/// Adds tags from the outside in, and leaves out what is beyond the second.
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
    fn a_tag_keeps_priority_and_number_apart() {
        let tag = VlanTag::new(5, 1_234).unwrap();
        assert_eq!((tag.priority(), tag.is_drop_eligible(), tag.id()), (5, false, 1_234));
        assert!(VlanTag::new(8, 1).is_none() && VlanTag::new(0, 4_096).is_none());
    }

    #[test]
    fn a_mere_priority_leaves_the_frame_in_the_untagged_network() {
        assert!(VlanTags::NONE.is_untagged());
        assert!(VlanTags::one(VlanTag::new(7, 0).unwrap()).is_untagged());
        assert!(!VlanTags::one(VlanTag::new(0, 1).unwrap()).is_untagged());
    }
}
