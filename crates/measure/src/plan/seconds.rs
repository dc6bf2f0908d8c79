//! Serialises durations as seconds, the unit of the files.

use linerate_units::Duration;
use serde::{Deserialize, Deserializer, Serializer};

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn serialize<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_secs_f64())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    let span = std::time::Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)?;
    Ok(span.into())
}
