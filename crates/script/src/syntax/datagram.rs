//! UDP datagrams in packetdrill's notation: `udp (1000)`, `udp 40001 > 8080 (1000)`.

use super::SyntaxError;
use super::cursor::Cursor;
use super::icmp::data_length;
use super::ip::IpMarks;
use super::packet::ports;
use core::fmt;

/// A UDP datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The fields of the IP header that the script specifies.
    pub ip: IpMarks,
    /// Source and destination port, for scripts with several sockets; `None` if the script gives
    /// none.
    pub ports: Option<(u16, u16)>,
    /// Number of data bytes.
    pub length: u16,
}

/// Parses the datagram that follows the word `udp`.
pub(super) fn datagram(cursor: &mut Cursor<'_>, ip: IpMarks) -> Result<Datagram, SyntaxError> {
    let ports = ports(cursor)?;
    Ok(Datagram { ip, ports, length: data_length(cursor)? })
}

impl fmt::Display for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}udp ", self.ip)?;
        if let Some((source, destination)) = self.ports {
            write!(f, "{source} > {destination} ")?;
        }
        write!(f, "({})", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_formatted_as_they_were_parsed() {
        for text in ["udp (1000)", "udp 40001 > 8080 (0)"] {
            let mut cursor = Cursor::new(text.strip_prefix("udp").unwrap(), 1);
            let read = datagram(&mut cursor, IpMarks::default()).unwrap();
            assert_eq!(read.to_string(), text);
        }
        let too_long = datagram(&mut Cursor::new("(65508)", 1), IpMarks::default()).unwrap_err();
        assert!(too_long.what.contains("room for 65507"), "{too_long}");
    }
}
