//! A hash table from addresses that a peer can choose to small numbers, keyed with a secret.

use core::net::Ipv4Addr;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

/// A table of addresses.
#[derive(Debug)]
pub(crate) struct AddressTable {
    hasher: SipHasher13,
    table: HashTable<(Ipv4Addr, u32)>,
}

impl AddressTable {
    /// Creates an empty table.
    pub(crate) const fn new(hasher: SipHasher13) -> Self {
        Self { hasher, table: HashTable::new() }
    }

    /// Returns the number of an address.
    #[inline]
    pub(crate) fn get(&self, address: Ipv4Addr) -> Option<u32> {
        if self.table.is_empty() { None } else { self.find(address) }
    }

    #[inline(never)]
    fn find(&self, address: Ipv4Addr) -> Option<u32> {
        self.table.find(self.hash(address), |entry| entry.0 == address).map(|entry| entry.1)
    }

    /// Inserts an address that is not in the table, with its number.
    pub(crate) fn insert(&mut self, address: Ipv4Addr, number: u32) {
        debug_assert!(self.get(address).is_none(), "an address has one number");
        let hasher = self.hasher;
        self.table
            .insert_unique(self.hash(address), (address, number), |entry| hash(&hasher, entry.0));
    }

    /// Removes an address.
    pub(crate) fn remove(&mut self, address: Ipv4Addr) {
        if let Ok(entry) = self.table.find_entry(self.hash(address), |entry| entry.0 == address) {
            entry.remove();
        }
    }

    /// Returns the number of addresses.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    fn hash(&self, address: Ipv4Addr) -> u64 {
        hash(&self.hasher, address)
    }
}

fn hash(hasher: &SipHasher13, address: Ipv4Addr) -> u64 {
    hasher.hash(&address.octets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;

    #[test]
    fn inserted_addresses_are_found_until_removed() {
        let mut table = AddressTable::new(Keys::new([3; 32]).table("addresses"));
        for number in 0..200 {
            table.insert(Ipv4Addr::from_bits(number * 7), number);
        }
        table.remove(Ipv4Addr::from_bits(21));
        assert_eq!(table.get(Ipv4Addr::from_bits(21)), None);
        assert_eq!(table.get(Ipv4Addr::from_bits(28)), Some(4));
        assert_eq!(table.len(), 199);
    }
}
