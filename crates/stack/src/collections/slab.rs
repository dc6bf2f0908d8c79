//! A slab: stores values at small indices, and reuses the indices of removed values. Keys contain a
//! generation, so that a key becomes invalid when its value is removed.

use super::{KEPT, give_back};
use alloc::vec::Vec;
use core::fmt;

/// The key of a value: its index, and the generation of its slot. Both numbers are in one 64-bit
/// word, because a key is often loaded just after it was stored. With two separate stores, the
/// processor could not forward the stored data to this load.
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
    /// Indices of free slots, as a stack: the index at the end is used next. After
    /// [`Slab::shrink`], this list can also contain indices of slots that were removed, or that
    /// were removed and are in use again. [`Slab::insert`] skips these indices.
    free: Vec<u32>,
    /// Number of values.
    values: usize,
    /// The generation with which the next new slot begins. Invariant: it is later than the
    /// generation of every key whose slot no longer exists. Such a key therefore never finds the
    /// value of a new slot.
    generation: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    content: Option<T>,
}

impl<T> Slab<T> {
    /// Creates an empty slab.
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), values: 0, generation: 0 }
    }

    /// Stores a value, and returns its key. Reuses the slot that was freed most recently, because
    /// that slot is most likely in the processor's cache.
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = loop {
            match self.free.pop() {
                Some(index) if self.is_free(index) => break index,
                Some(_) => {}
                None => break self.make_slot(),
            }
        };
        self.values += 1;
        let slot = &mut self.slots[index as usize];
        slot.content = Some(value);
        Key::new(index, slot.generation)
    }

    /// Removes and returns the value at an index, and invalidates its keys.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let value = slot.content.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.values -= 1;
        Some(value)
    }

    /// Removes the free slots at the end of the slab, if more than three quarters of all slots are
    /// free. Returns the number of slots that remain, or `None` if no slot was removed. The search
    /// for the last used slot runs backwards from the end, so it passes only slots that are then
    /// removed. The amortised cost per removal is therefore constant.
    #[inline]
    pub(crate) fn shrink(&mut self) -> Option<usize> {
        if self.slots.len() > 4 * self.values + KEPT { self.give_back_slots() } else { None }
    }

    #[cold]
    fn give_back_slots(&mut self) -> Option<usize> {
        let last = self.slots.iter().rposition(|slot| slot.content.is_some());
        let length = last.map_or(0, |last| last + 1);
        let latest = self.slots.drain(length..).map(|slot| slot.generation).max()?;
        self.generation = self.generation.max(latest);
        give_back(&mut self.slots);
        // Each of the `length` remaining slots needs at most one entry in `free`, which has more
        // than twice as many entries. The other entries are duplicates, or refer to slots that were
        // removed or are in use. So `retain` and `dedup` remove more than half of the entries.
        if self.free.len() > 2 * length + KEPT {
            let slots = &self.slots;
            let is_free = |slot: &Slot<T>| slot.content.is_none();
            self.free.retain(|&index| slots.get(index as usize).is_some_and(is_free));
            self.free.sort_unstable();
            self.free.dedup();
            give_back(&mut self.free);
        }
        Some(length)
    }

    /// Returns the value at an index, without a check of a key's generation.
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.content.as_ref()
    }

    /// Returns a mutable reference to the value at an index, without a check of a key's generation.
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.content.as_mut()
    }

    /// Returns the value to which a key refers, unless the value was removed.
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index() as usize)?;
        if slot.generation == key.generation() { slot.content.as_ref() } else { None }
    }

    /// Returns a mutable reference to the value of a key, unless the value was removed.
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

    /// Returns a mutable reference to the value at an index, and the key of the value.
    #[inline]
    pub(crate) fn entry_mut(&mut self, index: u32) -> Option<(Key, &mut T)> {
        let slot = self.slots.get_mut(index as usize)?;
        let generation = slot.generation;
        slot.content.as_mut().map(|value| (Key::new(index, generation), value))
    }

    /// Returns the current key of the value at an index.
    pub(crate) fn key(&self, index: u32) -> Option<Key> {
        self.entry(index).map(|(key, _)| key)
    }

    /// Returns the number of values.
    pub(crate) const fn len(&self) -> usize {
        self.values
    }

    /// Returns all values with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| Some((index, slot.content.as_ref()?)))
    }

    fn make_slot(&mut self) -> u32 {
        #[allow(clippy::cast_possible_truncation, reason = "limits keep the values far below 2^32")]
        let index = self.slots.len() as u32;
        self.slots.push(Slot { generation: self.generation, content: None });
        index
    }

    fn is_free(&self, index: u32) -> bool {
        self.slots.get(index as usize).is_some_and(|slot| slot.content.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

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

    #[test]
    fn free_slots_at_the_end_are_given_back_and_their_keys_stay_invalid() {
        let mut slab = Slab::new();
        let keys: Vec<Key> = (0..10_000).map(|number| slab.insert(number)).collect();
        for key in &keys[1..] {
            slab.remove(key.index());
            slab.shrink();
        }
        assert_eq!((slab.slots.len(), slab.len()), (1, 1));
        assert!(slab.slots.capacity() <= KEPT && slab.free.capacity() <= 4 * KEPT);
        let again: Vec<Key> = (0..10_000).map(|number| slab.insert(number)).collect();
        assert!(keys[1..].iter().all(|&key| slab.find(key).is_none()), "removed before");
        assert!(again.iter().enumerate().all(|(number, &key)| slab.find(key) == Some(&number)));
        assert_eq!(slab.len(), 10_001);
    }

    #[test]
    fn a_value_in_the_last_slot_keeps_the_others() {
        let mut slab = Slab::new();
        let keys: Vec<Key> = (0..1_000).map(|number| slab.insert(number)).collect();
        for key in &keys[..999] {
            slab.remove(key.index());
            assert_eq!(slab.shrink(), None);
        }
        slab.remove(999);
        assert_eq!((slab.shrink(), slab.len()), (Some(0), 0));
    }

    proptest! {
        #[test]
        fn a_slab_behaves_as_a_map(steps in prop::collection::vec(0_u32..100, 0..600)) {
            let mut slab = Slab::new();
            let mut model = BTreeMap::new();
            let mut removed = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                if step < 50 {
                    let key = slab.insert(number);
                    prop_assert!(!removed.contains(&key), "a key is used once");
                    model.insert(key, number);
                } else if let Some((&key, &number)) = model.iter().nth(step as usize % 7) {
                    model.remove(&key);
                    removed.push(key);
                    prop_assert_eq!(slab.remove(key.index()), Some(number));
                    // `shrink` frees slots only if the slab has more than 64 of them, which happens
                    // hardly ever in this test. So the test calls the function that frees them.
                    slab.give_back_slots();
                }
                prop_assert_eq!(slab.len(), model.len());
                prop_assert!(model.iter().all(|(&key, number)| slab.find(key) == Some(number)));
                prop_assert!(removed.iter().all(|&key| slab.find(key).is_none()));
            }
        }
    }
}
