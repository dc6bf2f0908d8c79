//! A hash table from IP addresses to small numbers, such as the indices of the addresses' entries
//! in an array. Its hash function has a secret key, because peers can choose the addresses and
//! could otherwise provoke collisions.

use core::net::IpAddr;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

/// A map from IP addresses to small numbers. Each address has one number.
#[derive(Debug)]
pub(crate) struct AddressTable {
    hasher: SipHasher13,
    table: HashTable<(IpAddr, u32)>,
}

impl AddressTable {
    /// Creates an empty table.
    pub(crate) const fn new(hasher: SipHasher13) -> Self {
        Self { hasher, table: HashTable::new() }
    }

    /// Returns the number that belongs to an address; `None` if the address is not in the table.
    #[inline]
    pub(crate) fn get(&self, address: IpAddr) -> Option<u32> {
        if self.table.is_empty() { None } else { self.find(address) }
    }

    #[inline(never)]
    fn find(&self, address: IpAddr) -> Option<u32> {
        self.table.find(self.hash(address), |entry| entry.0 == address).map(|entry| entry.1)
    }

    /// Inserts an address and its number. The address must not be in the table yet.
    pub(crate) fn insert(&mut self, address: IpAddr, number: u32) {
        debug_assert!(self.get(address).is_none(), "an address has one number");
        let hasher = self.hasher;
        self.table
            .insert_unique(self.hash(address), (address, number), |entry| hash(&hasher, entry.0));
    }

    /// Removes an address.
    pub(crate) fn remove(&mut self, address: IpAddr) {
        if let Ok(entry) = self.table.find_entry(self.hash(address), |entry| entry.0 == address) {
            entry.remove();
        }
    }

    /// Returns the number of addresses.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    fn hash(&self, address: IpAddr) -> u64 {
        hash(&self.hasher, address)
    }
}

fn hash(hasher: &SipHasher13, address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => hasher.hash(&address.octets()),
        IpAddr::V6(address) => hasher.hash(&address.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Keys;
    use core::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn inserted_addresses_are_found_until_removed() {
        let v4 = |number| IpAddr::from(Ipv4Addr::from_bits(number));
        let v6 = |number| IpAddr::from(Ipv6Addr::from_bits(number));
        let mut table = AddressTable::new(Keys::new([3; 32]).table("addresses"));
        for number in 0..200 {
            table.insert(v4(number * 7), number);
            table.insert(v6(u128::from(number) << 96), number);
        }
        table.remove(v4(21));
        assert_eq!(table.get(v4(21)), None);
        assert_eq!(table.get(v4(28)), Some(4));
        assert_eq!(table.get(v6(3 << 96)), Some(3));
        assert_eq!(table.len(), 399);
    }
}
