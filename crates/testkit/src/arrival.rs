//! Delivers a segment to a connection and to its twin: a copy of the connection that processes the
//! segment without header prediction.

use linerate_tcp::{Connection, Disposition};

/// Delivers a segment to a connection and to its twin by `give`, and checks the invariants of both.
/// If the connection refuses the segment, its state must not change.
///
/// # Panics
/// If a check fails, or the two connections return different dispositions.
pub(crate) fn arrive(
    connection: &mut Connection,
    twin: &mut Connection,
    give: impl Fn(&mut Connection) -> Disposition,
) -> Disposition {
    let twins = give(twin);
    // A refused segment must not change the connection. To check this, a copy of the connection is
    // needed, and copying its buffers is slow. The twin processes the segment first, so the copy is
    // made only if the twin has refused the segment.
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
