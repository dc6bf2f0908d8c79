//! Serialisation of durations as seconds, the unit of the result files.

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

/// Serialisation of an optional duration as seconds, or as null for `None`.
pub(super) mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    #[allow(clippy::ref_option, reason = "the signature is serde's")]
    pub(in crate::plan) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => serializer.serialize_some(&span.as_secs_f64()),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::plan) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<f64>::deserialize(deserializer)?;
        let span = seconds.map(std::time::Duration::try_from_secs_f64).transpose();
        Ok(span.map_err(serde::de::Error::custom)?.map(Duration::from))
    }
}
