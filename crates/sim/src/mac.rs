//! MAC addresses of a simulation: the number in the last two bytes identifies the NIC.

/// Returns the MAC address of NIC number `number`.
pub(crate) fn mac_address(number: usize) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

/// Returns the number of the NIC with this MAC address, or `None` for a group address.
pub(crate) fn mac_number(address: [u8; 6]) -> Option<usize> {
    let [first, .., high, low] = address;
    (first & 1 == 0).then(|| usize::from(u16::from_be_bytes([high, low])))
}
