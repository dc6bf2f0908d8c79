//! The system's counters: protocols, interfaces, drivers and queues of this network namespace.

use linerate_link::KernelInterface;
use std::collections::BTreeMap;
use std::fs;

/// Maximum number of changed counters in the evidence, which limits the length of its JSON line.
const MAX_CHANGES: usize = 120;

/// Maximum number of interfaces whose driver and queue counters are read.
const MAX_DEVICES: usize = 16;
/// Maximum number of counters that are read from one driver. The maximum limits memory: many
/// drivers have a set of counters for each queue of the interface.
const MAX_DRIVER_COUNTERS: usize = 1_000;

/// Columns of `/proc/net/dev` for an interface, in the order of the file.
const INTERFACE: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_compressed",
    "rx_multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "tx_collisions",
    "tx_carrier_errors",
    "tx_compressed",
];

/// Columns of `/proc/net/dev` that are ignored, because they do not indicate a limit or are
/// included in other columns.
const OMITTED: [&str; 4] = ["rx_compressed", "rx_multicast", "tx_compressed", "rx_frame_errors"];

/// The counters of the system by name, such as `Tcp.RetransSegs` or `eth0.rx_dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SystemCounters(BTreeMap<String, u64>);

impl SystemCounters {
    /// Reads all counters of the calling thread's network namespace.
    pub(super) fn read() -> Self {
        let read = |file: &str| {
            fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
        };
        let mut counters = Self::default();
        counters.add_tables(&read("snmp"));
        counters.add_tables(&read("netstat"));
        counters.add_interfaces(&read("dev"));
        counters.add_softnet(&read("softnet_stat"));
        counters.add_devices();
        counters
    }

    /// Adds the counters of queue disciplines and drivers, for interfaces that have them.
    fn add_devices(&mut self) {
        let names = self.0.keys().filter_map(|name| name.strip_suffix(".rx_bytes"));
        let names: Vec<String> = names.take(MAX_DEVICES).map(str::to_owned).collect();
        for name in names {
            // An interface that was removed after its name was read is skipped.
            let Ok(interface) = KernelInterface::named(&name) else { continue };
            if let Ok(Some(queue)) = interface.queue_counters() {
                let counters = [
                    ("dropped", queue.dropped),
                    ("requeued", queue.requeued),
                    ("overlimits", queue.overlimits),
                ];
                let counters =
                    counters.map(|(kind, count)| (format!("{name}.qdisc.{kind}"), count));
                self.0.extend(counters);
            }
            let driver = interface.driver_counters().unwrap_or_default();
            let driver = driver.into_iter().take(MAX_DRIVER_COUNTERS);
            self.0.extend(driver.map(|(kind, count)| (format!("{name}.driver.{kind}"), count)));
        }
    }

    /// Returns the increase of each counter that has grown since `earlier`. If more than
    /// `MAX_CHANGES` counters have grown, the others are left out.
    pub(super) fn since(&self, earlier: &Self) -> BTreeMap<String, u64> {
        let changed = self.0.iter().filter_map(|(name, &now)| {
            let difference = now.checked_sub(*earlier.0.get(name)?)?;
            (difference > 0).then(|| (name.clone(), difference))
        });
        // At most `MAX_CHANGES` counters are returned. Those of drivers come last, and so are left
        // out first, because they are the most numerous.
        let (driver, other): (Vec<_>, Vec<_>) =
            changed.partition(|(name, _)| name.contains(".driver."));
        other.into_iter().chain(driver).take(MAX_CHANGES).collect()
    }

    /// Adds the counters of a file with pairs of lines: `Prefix: NAME …` and `Prefix: VALUE …`.
    fn add_tables(&mut self, text: &str) {
        let mut lines = text.lines();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let Some((prefix, names)) = names.split_once(':') else { return };
            let Some((_, values)) = values.split_once(':') else { return };
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                // A field with a negative value, such as the setting `Tcp.MaxConn`, is not a
                // counter. It does not parse, so it is skipped.
                if let Ok(value) = value.parse() {
                    self.0.insert(format!("{prefix}.{name}"), value);
                }
            }
        }
    }

    /// Adds the columns of `/proc/net/dev` for each interface.
    fn add_interfaces(&mut self, text: &str) {
        for (interface, values) in text.lines().filter_map(|line| line.split_once(':')) {
            for (name, value) in INTERFACE.iter().zip(values.split_whitespace()) {
                if let (Ok(value), false) = (value.parse(), OMITTED.contains(name)) {
                    self.0.insert(format!("{}.{name}", interface.trim()), value);
                }
            }
        }
    }

    /// Adds two columns of `/proc/net/softnet_stat`, each as a sum over the CPUs. One counts
    /// packets that were dropped because the backlog was full. The other counts how often a
    /// software interrupt reached its limit before it had processed all packets.
    fn add_softnet(&mut self, text: &str) {
        for (column, name) in [(1, "softnet.dropped"), (2, "softnet.time_squeeze")] {
            let values = text.lines().filter_map(|line| {
                u64::from_str_radix(line.split_whitespace().nth(column)?, 16).ok()
            });
            let values: Vec<u64> = values.collect();
            if !values.is_empty() {
                self.0.insert(name.to_owned(), values.iter().sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(retransmitted: u64, dropped: u64) -> SystemCounters {
        let mut counters = SystemCounters::default();
        counters.add_tables(&format!(
            "Tcp: MaxConn RetransSegs InErrs\nTcp: -1 {retransmitted} 3\nUdp: RcvbufErrors\n"
        ));
        counters.add_interfaces(&format!(
            "Inter-| Receive\n face |bytes\n eth0: 1 2 0 {dropped} 0 0 0 0 3 4 0 0 0 0 0 0\n"
        ));
        counters.add_softnet("0000000a 00000002 00000001\n0000000b 00000003 00000000\n");
        counters
    }

    #[test]
    fn only_changed_counters_are_reported() {
        let changes = sample(12, 700).since(&sample(10, 34));
        let expected = BTreeMap::from([
            ("Tcp.RetransSegs".to_owned(), 2),
            ("eth0.rx_dropped".to_owned(), 666),
        ]);
        assert_eq!(changes, expected);
        assert_eq!(sample(1, 1).0["softnet.dropped"], 5);
        assert!(!sample(1, 1).0.contains_key("Tcp.MaxConn"));
    }

    #[test]
    fn a_counter_that_is_new_or_was_reset_is_not_a_difference() {
        assert_eq!(sample(5, 0).since(&SystemCounters::default()), BTreeMap::new());
        assert_eq!(sample(5, 0).since(&sample(9, 0)), BTreeMap::new());
    }

    #[test]
    fn counters_of_drivers_do_not_displace_others() {
        let mut then = sample(0, 0);
        for number in 0..MAX_CHANGES {
            then.0.insert(format!("eth0.driver.queue_{number:03}"), 0);
        }
        let now = SystemCounters(then.0.keys().map(|name| (name.clone(), 9)).collect());
        let changes = now.since(&then);
        assert_eq!(changes.len(), MAX_CHANGES);
        assert!(changes.contains_key("softnet.time_squeeze"), "{changes:?}");
    }

    #[test]
    fn this_machine_has_counters() {
        assert!(SystemCounters::read().0.contains_key("Tcp.RetransSegs"));
    }
}
