//! A slab: stores values at small indices, which are reused. Keys contain a generation, which makes
//! them invalid when their value is removed.

use alloc::vec::Vec;
use core::fmt;

/// The index of a value, and the generation of its slot. Both are in one word: a key is often
/// stored and loaded again at once, and storing two halves would defeat store forwarding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

impl Key {
    #[inline]
    fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(index) << 32 | u64::from(generation))
    }

    /// Returns the index of the value.
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

/// Storage for values with stable indices.
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
    /// Creates an empty slab.
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// Stores a value in the slot that was freed last, which is most likely in the processor's
    /// cache.
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| self.make_slot());
        let slot = &mut self.slots[index as usize];
        slot.content = Some(value);
        Key::new(index, slot.generation)
    }

    /// Removes a value, and invalidates its keys.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.content.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    /// Returns the value at an index, of any generation.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.content.as_ref()
    }

    /// Returns the value at an index for writing, of any generation.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.content.as_mut()
    }

    /// Returns the value to which a key refers, unless the value was removed.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index() as usize)?;
        if slot.generation == key.generation() { slot.content.as_ref() } else { None }
    }

    /// Returns the value to which a key refers for writing, unless the value was removed.
    #[inline]
    pub(crate) fn find_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index() as usize)?;
        if slot.generation == key.generation() { slot.content.as_mut() } else { None }
    }

    /// Returns the value at an index, with its key.
    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Option<(Key, &T)> {
        let slot = self.slots.get(index as usize)?;
        slot.content.as_ref().map(|value| (Key::new(index, slot.generation), value))
    }

    /// Returns the value at an index for writing, with its key.
    #[inline]
    pub(crate) fn entry_mut(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let slot = self.slots.get_mut(index as usize)?;
        let generation = slot.generation;
        slot.content.as_mut().map(|value| (Key::new(index, generation), value))
    }

    /// Returns the present key of the value at an index.
    pub(crate) fn key(&self, index: u32) -> Option<Key> {
        self.entry(index).map(|(key, _)| key)
    }

    /// Returns the number of values.
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns all values with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| Some((index, slot.content.as_ref()?)))
    }

    fn make_slot(&mut self) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "limits keep the values far below 2^32")]
        let index = self.slots.len() as u32;
        self.slots.push(Slot { generation: 0, content: None });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_removed_value_is_invalid() {
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
        assert_eq!(slab.iter().map(|(_, value)| *value).collect::<alloc::string::String>(), "cb");
        assert_eq!((slab.len(), slab.get(9)), (2, None));
    }
}
