//! The counters of linerate's TCP, under the names that all benches use.

use linerate_ends::socket::of_connection;
use linerate_evidence::{EndCounters, names};
use linerate_stack::Stack;
use linerate_tcp::Connection;

/// Returns the counters of a connection and its host, under the names that all benches use.
pub(crate) fn of(connection: &Connection, stack: &Stack) -> EndCounters {
    let mut end = of_connection(connection.statistics(), &connection.information());
    let counted = stack.counters();
    end.set(names::BAD_CHECKSUMS, counted.tcp.in_checksum_errors);
    end.set("bad_segments", counted.tcp.in_errors);
    end.set(names::DROPPED_FRAMES, counted.receive.drops + counted.transmit.drops);
    end
}
