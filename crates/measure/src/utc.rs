//! The date and time in UTC, for the names of folders and for the facts of a sweep.

use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    /// Seconds since 1 January 1970.
    seconds: u64,
}

impl Utc {
    /// Returns the current time of the system's real-time clock.
    #[must_use]
    pub fn now() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since_1970.as_secs() }
    }

    /// Formats the time as in ISO 8601: `2026-11-21T02:00:00Z`.
    #[must_use]
    pub fn text(self) -> String {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.time_of_day();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// Formats the time without characters that are unusual in file names: `20261121T020000Z`.
    #[must_use]
    pub fn file_name(self) -> String {
        self.text().replace(['-', ':'], "")
    }

    /// Returns hour, minute and second.
    const fn time_of_day(self) -> (u64, u64, u64) {
        (self.seconds / 3_600 % 24, self.seconds / 60 % 60, self.seconds % 60)
    }

    /// Returns year, month and day. Every period of 400 years has 146,097 days. In the computation,
    /// years start in March, so that a leap day is the last day of its year.
    const fn date(self) -> (u64, u64, u64) {
        let days_since_march_of_year_0 = self.seconds / 86_400 + 719_468;
        let era = days_since_march_of_year_0 / 146_097;
        let day_of_era = days_since_march_of_year_0 % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
        (year, month, day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_have_their_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (593_395_199, "1988-10-20T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Utc { seconds }.text(), text);
        }
        assert_eq!(Utc { seconds: 0 }.file_name(), "19700101T000000Z");
    }
}
