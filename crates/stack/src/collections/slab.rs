//! Things with small numbers that are used again, and keys that know whether the thing is still the
//! one that they were made for.

use alloc::vec::Vec;
use core::fmt;

/// The place of a thing, and which of the things that were there in turn: one word, since names are passed on through
/// memory, and what was written in two pieces is waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

impl Key {
    #[inline]
    fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(index) << 32 | u64::from(generation))
    }

    /// The place.
    #[inline]
    pub(crate) const fn index(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    const fn generation(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {})", self.index(), self.generation())
    }
}

/// Places for things.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    content: Option<T>,
}

impl<T> Slab<T> {
    /// No things.
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Gives a thing a place: the one that was left last, whose memory is warm.
    pub(crate) fn insert(&mut self, thing: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| self.make_slot());
        let slot = &mut self.slots[index as usize];
        slot.content = Some(thing);
        Key::new(index, slot.generation)
    }

    /// Takes a thing out. Keys that were made for it fit nothing any more.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let thing = slot.content.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(thing)
    }

    /// The thing at a place, whichever it is.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.content.as_ref()
    }

    /// The thing at a place, whichever it is, to change.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.content.as_mut()
    }

    /// The thing that the key was made for, if it is still there.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index() as usize)?;
        if slot.generation == key.generation() { slot.content.as_ref() } else { None }
    }

    /// The same, to change.
    #[inline]
    pub(crate) fn find_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index() as usize)?;
        if slot.generation == key.generation() { slot.content.as_mut() } else { None }
    }

    /// The thing at a place, and its key.
    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Option<(Key, &T)> {
        let slot = self.slots.get(index as usize)?;
        slot.content.as_ref().map(|thing| (Key::new(index, slot.generation), thing))
    }

    /// The same, to change.
    #[inline]
    pub(crate) fn entry_mut(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let slot = self.slots.get_mut(index as usize)?;
        let generation = slot.generation;
        slot.content.as_mut().map(|thing| (Key::new(index, generation), thing))
    }

    /// The key of the thing at a place.
    pub(crate) fn key(&self, index: u32) -> Option<Key> {
        self.entry(index).map(|(key, _)| key)
    }

    /// How many things there are.
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Every thing with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| Some((index, slot.content.as_ref()?)))
    }

    fn make_slot(&mut self) -> u32 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "limits keep the things to far fewer than 2^32"
        )]
        let index = self.slots.len() as u32;
        self.slots.push(Slot { generation: 0, content: None });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_fits_only_the_thing_that_it_was_made_for() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        let second = slab.insert('b');
        assert_eq!(slab.remove(first.index()), Some('a'));
        assert_eq!(slab.remove(first.index()), None);
        let third = slab.insert('c');
        assert_eq!(third.index(), first.index());
        assert_eq!(
            [first, second, third].map(|key| slab.find(key)),
            [None, Some(&'b'), Some(&'c')]
        );
        assert_eq!(slab.key(third.index()), Some(third));
        assert_eq!(slab.iter().map(|(_, thing)| *thing).collect::<alloc::string::String>(), "cb");
        assert_eq!((slab.len(), slab.get(9)), (2, None));
    }
}
