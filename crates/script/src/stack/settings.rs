//! The sysctls and route properties that linerate's host supports.

use super::StackMachine;
use super::fast_open;
use super::options::{congestion, handshake_timeout};
use crate::syntax::Setting;
use linerate_stack::SynCookies;
use linerate_tcp::{BufferSize, EcnRule, PathSearch};
use linerate_units::Duration;
use std::num::NonZeroU32;

/// Minimum RTO of Linux in milliseconds, from which the timeout of `tcp_retries2` is computed.
const RTO_MIN_MILLIS: u64 = 200;
/// Number of doublings of the RTO before it reaches its maximum of 120 s. Nine doublings of 200 ms
/// give 102.4 s, and a tenth would exceed 120 s.
const MOST_DOUBLINGS: u32 = 9;

/// Applies a setting, which affects sockets that are created from now on.
///
/// # Errors
/// The reason why the setting is not supported.
pub(super) fn set(machine: &mut StackMachine, setting: &Setting) -> Result<(), String> {
    let Setting { name, value, .. } = setting;
    let wrong = || format!("{name}={value}: this value is not supported");
    let number = || value.parse::<u64>().map_err(|_| wrong());
    let switch = || match value.as_str() {
        "0" => Ok(false),
        "1" | "2" => Ok(true),
        _ => Err(wrong()),
    };
    let (config, keep_alive) = (&mut machine.config, &mut machine.keep_alive);
    let cookies = &mut machine.syn_cookies;
    let short = name.strip_prefix("net.ipv4.").unwrap_or(name);
    match short {
        "tcp_congestion_control" => config.congestion = congestion(value).ok_or_else(wrong)?,
        "tcp_sack" => config.selective_acks = switch()?,
        "tcp_timestamps" => config.timestamps = switch()?,
        "tcp_window_scaling" => config.window_scaling = switch()?,
        "tcp_rmem" => config.receive_buffer = buffer(value).ok_or_else(wrong)?,
        "tcp_wmem" => config.send_buffer = buffer(value).ok_or_else(wrong)?,
        "tcp_fin_timeout" => config.orphan_timeout = Duration::from_secs(number()?),
        "tcp_keepalive_time" => keep_alive.idle = Duration::from_secs(number()?),
        "tcp_keepalive_intvl" => keep_alive.interval = Duration::from_secs(number()?),
        "tcp_keepalive_probes" => {
            keep_alive.probes = u32::try_from(number()?).map_err(|_| wrong())?;
        }
        "tcp_ecn" => {
            (config.ecn, config.accurate_ecn) = match value.as_str() {
                "0" => (EcnRule::Off, EcnRule::Off),
                "1" => (EcnRule::Request, EcnRule::Off),
                "2" => (EcnRule::Accept, EcnRule::Off),
                "3" => (EcnRule::Accept, EcnRule::Request),
                "4" => (EcnRule::Request, EcnRule::Accept),
                "5" => (EcnRule::Accept, EcnRule::Accept),
                _ => return Err(wrong()),
            }
        }
        "tcp_syncookies" => {
            *cookies = match value.as_str() {
                "0" => SynCookies::Never,
                "1" => SynCookies::UnderPressure,
                "2" => SynCookies::Always,
                _ => return Err(wrong()),
            }
        }
        "tcp_fastopen" => {
            machine.fast_open =
                fast_open::rules(value).map_err(|what| format!("{name}={value}: {what}"))?;
        }
        "tcp_fastopen_key" => {
            let keys = fast_open::keys(value).ok_or_else(|| {
                format!(
                    "{name}={value}: a key is written 00112233-44556677-8899aabb-ccddeeff, \
                     and the one before it behind a comma"
                )
            })?;
            machine.host.stack_mut().set_fast_open_keys(Some(keys));
        }
        "tcp_frto" => config.frto = switch()?,
        "tcp_slow_start_after_idle" => config.restart_after_idle = switch()?,
        "tcp_mtu_probing" => {
            config.path_search = match value.as_str() {
                "0" => PathSearch::Off,
                "1" => PathSearch::WhenNarrow,
                "2" => PathSearch::Always,
                _ => return Err(wrong()),
            }
        }
        "tcp_base_mss" => config.path_base = u32::try_from(number()?).map_err(|_| wrong())?,
        "tcp_mtu_probe_floor" => {
            config.path_floor = u32::try_from(number()?).map_err(|_| wrong())?;
        }
        // Linux uses these values for "no limit".
        "tcp_notsent_lowat" if matches!(value.as_str(), "-1" | "4294967295") => {
            machine.unsent_low_water = None;
        }
        "tcp_notsent_lowat" => {
            machine.unsent_low_water = Some(u32::try_from(number()?).map_err(|_| wrong())?);
        }
        "tcp_rfc1337" => config.time_wait_outlives_resets = switch()?,
        "tcp_invalid_ratelimit" => config.challenge_interval = Duration::from_millis(number()?),
        "tcp_retries2" => {
            let doublings =
                u32::try_from(number()?).ok().filter(|&count| count <= 15).ok_or_else(wrong)?;
            config.give_up_after = timeout(doublings);
        }
        "tcp_syn_retries" | "tcp_synack_retries" => {
            let doublings =
                u32::try_from(number()?).ok().filter(|&count| count <= 6).ok_or_else(wrong)?;
            config.give_up_syn_after = handshake_timeout(doublings);
        }
        _ if name.starts_with("route.") => return set_route(machine, setting),
        _ => return as_always(name, short, value),
    }
    Ok(())
}

/// Sets a property of the default route, named as in `ip route`.
fn set_route(
    machine: &mut StackMachine,
    Setting { name, value, .. }: &Setting,
) -> Result<(), String> {
    let wrong = || format!("{name}={value}: this value is not supported");
    let number = || value.parse::<u32>().map_err(|_| wrong());
    match name.trim_start_matches("route.") {
        "initcwnd" => machine.route.initial_window = NonZeroU32::new(number()?),
        "initrwnd" => machine.route.initial_receive_window = NonZeroU32::new(number()?),
        "advmss" => {
            let mss = u16::try_from(number()?).map_err(|_| wrong())?;
            machine.config.largest_segment = (mss > 0).then_some(mss);
        }
        "congctl" => machine.config.congestion = congestion(value).ok_or_else(wrong)?,
        "mtu" => {
            machine.route.mtu = Some(number()? as usize + usize::from(machine.longer));
        }
        "window" => machine.route.window_clamp = Some(number()?),
        _ => return Err(format!("{name}: linerate's routes have no such property")),
    }
    machine.host.stack_mut().add_route(machine.route);
    Ok(())
}

/// Accepts a setting for which linerate has a fixed value, if the script sets this value. Returns
/// an error for any other value.
fn as_always(name: &str, short: &str, value: &str) -> Result<(), String> {
    const ALWAYS: [(&str, &[&str]); 14] = [
        ("tcp_ecn_fallback", &["1"]),
        // In Linux, these two settings determine which segments carry the AccECN option. The value
        // 1 corresponds to RFC 9768 §3.2.3.3, which linerate always follows.
        ("tcp_ecn_option", &["1"]),
        ("tcp_ecn_option_beacon", &["1"]),
        ("tcp_early_retrans", &["3", "4"]),
        ("tcp_recovery", &["1"]),
        ("tcp_dsack", &["1"]),
        ("tcp_reordering", &["3"]),
        ("tcp_no_metrics_save", &["1"]),
        ("tcp_fack", &["0"]),
        ("tcp_abort_on_overflow", &["0"]),
        ("tcp_tso_win_divisor", &["3"]),
        ("tcp_low_latency", &["0"]),
        ("tcp_stdurg", &["1"]),
        ("tcp_syn_linear_timeouts", &["0"]),
    ];
    match ALWAYS.iter().find(|(known, _)| *known == short) {
        Some((_, values)) if values.contains(&value) => Ok(()),
        Some((_, values)) => Err(format!("{name}={value}: it is always {}", values.join(" or "))),
        None => Err(format!("{name}: linerate's host has no such setting")),
    }
}

/// Parses the sizes of a buffer, `min default max`; `None` for any other text. `min` is ignored:
/// Linux guarantees this size under memory pressure, but linerate's memory budget gives no such
/// guarantee.
fn buffer(value: &str) -> Option<BufferSize> {
    let sizes: Option<Vec<u32>> = value.split_whitespace().map(|size| size.parse().ok()).collect();
    match sizes?[..] {
        [_, initial, most] if initial > 0 && initial < most => {
            Some(BufferSize::Tuned { initial, most })
        }
        [_, size, most] if size > 0 && size == most => Some(BufferSize::Fixed(size)),
        _ => None,
    }
}

/// Returns the time from the first transmission of a segment until it has been retransmitted
/// `retries` times without success. As in Linux (`retransmits_timed_out` in tcp_timer.c), the time
/// is computed from Linux's minimum RTO, not from the connection's measured RTO.
const fn timeout(retries: u32) -> Duration {
    if retries <= MOST_DOUBLINGS {
        return Duration::from_millis(((2 << retries) - 1) * RTO_MIN_MILLIS);
    }
    let doubled = ((2 << MOST_DOUBLINGS) - 1) * RTO_MIN_MILLIS;
    Duration::from_millis(doubled + (retries - MOST_DOUBLINGS) as u64 * 120_000)
}
