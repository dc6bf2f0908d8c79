//! Doubly linked lists whose items are small numbers, such as indices of sockets. One array,
//! indexed by item, stores the links of all items. Insertion, removal and the check for membership
//! take constant time. Memory is allocated only when the array grows. An item is in at most one
//! list at a time.

use super::give_back;
use alloc::vec::Vec;

/// Value of a link that leads to no item: `previous` of the item at the front, and `next` of the
/// item at the back.
const END: u32 = u32::MAX;
/// Value of `previous` that marks an item as being in no list.
const OUTSIDE: u32 = u32::MAX - 1;

/// Head, tail and length of a list whose items are linked by [`Links`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    length: u32,
}

impl List {
    /// A list without items.
    pub(crate) const EMPTY: Self = Self { first: END, last: END, length: 0 };

    /// Returns the item at the front, or `None` if the list is empty.
    pub(crate) const fn first(&self) -> Option<u32> {
        if self.first == END { None } else { Some(self.first) }
    }

    /// Returns the item at the back, or `None` if the list is empty.
    pub(crate) const fn last(&self) -> Option<u32> {
        if self.last == END { None } else { Some(self.last) }
    }

    /// Returns the only item of the list. Returns `None` if the list is empty or has several items.
    pub(crate) const fn only(&self) -> Option<u32> {
        if self.length == 1 { Some(self.first) } else { None }
    }

    /// Returns whether this item is at the front.
    #[inline]
    pub(crate) const fn begins_with(&self, item: u32) -> bool {
        self.first == item
    }

    /// Returns the number of items.
    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns whether the list is empty.
    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    previous: u32,
    next: u32,
}

/// The links between the items of all lists. Several lists can share this array of links, as long
/// as no item is in two of them.
#[derive(Debug)]
pub(crate) struct Links {
    nodes: Vec<Node>,
}

impl Links {
    /// Creates an empty set of links.
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Returns whether the item is in any list.
    #[inline]
    pub(crate) fn contains(&self, item: u32) -> bool {
        self.nodes.get(item as usize).is_some_and(|node| node.previous != OUTSIDE)
    }

    /// Appends an item at the back of `list`. The item must be in no list. Only the code for an
    /// empty list is inlined, because `list` is mostly empty at this call.
    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut List, item: u32) {
        debug_assert!(!self.contains(item), "an item is in one list at a time");
        match self.nodes.get_mut(item as usize) {
            Some(node) if list.is_empty() => {
                *node = Node { previous: END, next: END };
                *list = List { first: item, last: item, length: 1 };
            }
            _ => self.append(list, item),
        }
    }

    #[inline(never)]
    fn append(&mut self, list: &mut List, item: u32) {
        self.make_room_for(item);
        self.nodes[item as usize] = Node { previous: list.last, next: END };
        match list.last {
            END => list.first = item,
            last => self.nodes[last as usize].next = item,
        }
        list.last = item;
        list.length += 1;
    }

    /// Removes an item from `list`, which must be the list that contains it.
    #[inline]
    pub(crate) fn remove(&mut self, list: &mut List, item: u32) {
        debug_assert!(self.contains(item), "a removed item is in a list");
        match self.nodes.get_mut(item as usize) {
            Some(node) if list.length == 1 => {
                node.previous = OUTSIDE;
                *list = List::EMPTY;
            }
            _ => self.remove_between(list, item),
        }
    }

    #[inline(never)]
    fn remove_between(&mut self, list: &mut List, item: u32) {
        let Node { previous, next } = self.nodes[item as usize];
        match previous {
            END => list.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            END => list.last = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        self.nodes[item as usize].previous = OUTSIDE;
        list.length -= 1;
    }

    /// Removes and returns the item at the front of `list`.
    #[inline]
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let first = list.first()?;
        let node = self.nodes.get_mut(first as usize)?;
        let next = node.next;
        node.previous = OUTSIDE;
        list.first = next;
        list.length -= 1;
        // If the removed item was the only item of the list, `next` is `END`. This is no valid
        // index, so the lookup below fails, and the list becomes empty.
        match self.nodes.get_mut(next as usize) {
            Some(next) => next.previous = END,
            None => list.last = END,
        }
        Some(first)
    }

    /// Returns the items of `list` from front to back.
    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(list.first(), |&item| match self.nodes[item as usize].next {
            END => None,
            next => Some(next),
        })
    }

    /// Frees the links of the items whose number is at least `length`. If some of these items are
    /// in a list, keeps the links up to the highest-numbered one of them.
    #[cold]
    pub(crate) fn shrink(&mut self, length: usize) {
        // The search for the highest-numbered item that is in a list begins at the end of the
        // array. So it examines only this item's node and nodes that are freed below.
        let length = length.min(self.nodes.len());
        let in_list = |node: &Node| node.previous != OUTSIDE;
        let last = self.nodes[length..].iter().rposition(in_list);
        self.nodes.truncate(last.map_or(length, |last| length + last + 1));
        give_back(&mut self.nodes);
    }

    fn make_room_for(&mut self, item: u32) {
        if self.nodes.len() <= item as usize {
            self.nodes.resize(item as usize + 1, Node { previous: OUTSIDE, next: END });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn two_lists_over_the_same_items_behave_as_two_queues(
            steps in prop::collection::vec((0_u32..12, 0_usize..2, 0_u8..3), 0..200),
        ) {
            let mut links = Links::new();
            let mut lists = [List::EMPTY, List::EMPTY];
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (item, which, step) in steps {
                let holder = (0..2).find(|&list| model[list].contains(&item));
                prop_assert_eq!(links.contains(item), holder.is_some());
                match (step, holder) {
                    (0, None) => {
                        links.push_back(&mut lists[which], item);
                        model[which].push_back(item);
                    }
                    (1, Some(list)) => {
                        links.remove(&mut lists[list], item);
                        model[list].retain(|&other| other != item);
                    }

                    (2, _) => {
                        let popped = links.pop_front(&mut lists[which]);
                        prop_assert_eq!(popped, model[which].pop_front());
                    }
                    _ => {}
                }
                for (list, model) in lists.iter().zip(&model) {
                    prop_assert_eq!(links.iter(list).collect::<Vec<_>>(), Vec::from(model.clone()));
                    prop_assert_eq!(list.len(), model.len());
                }
            }
        }
    }
}
