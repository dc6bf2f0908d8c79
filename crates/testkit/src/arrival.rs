//! Delivers a segment to a connection and to its twin: a copy of the connection that processes the
//! segment without header prediction.

use linerate_tcp::{Connection, Disposition};

/// Delivers a segment to both connections by `give`, and checks the invariants of both. A refused
/// segment must leave the connection unchanged.
///
/// # Panics
/// If a check fails, or the two connections return different dispositions.
pub(crate) fn arrive(
    connection: &mut Connection,
    twin: &mut Connection,
    give: impl Fn(&mut Connection) -> Disposition,
) -> Disposition {
    let twins = give(twin);
    // To check that a refused segment has changed nothing, a copy of the connection with all its
    // buffers is needed. Copying is slow. So it is done only if the twin, which processes the
    // segment first, has refused it.
    let before = matches!(twins, Disposition::Refused(_)).then(|| connection.clone());
    let disposition = give(connection);
    assert_eq!(disposition, twins, "fast and slow path differ about a segment");
    connection.check();
    twin.check();
    if let Some(before) = before {
        connection.assert_unchanged_by_refusal(&before);
    }
    disposition
}
