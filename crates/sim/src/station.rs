//! The addresses of stations on Ethernets: each card of a world has a number, and its address ends in it.

/// The address of a station.
pub(crate) fn station(number: usize) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

/// The station that an address names; none if it names all.
pub(crate) fn station_number(address: [u8; 6]) -> Option<usize> {
    let [first, .., high, low] = address;
    (first & 1 == 0).then(|| usize::from(u16::from_be_bytes([high, low])))
}
