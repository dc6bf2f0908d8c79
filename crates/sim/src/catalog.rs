//! The TOML files that are compiled into the simulator.

use crate::parameter::ParameterError;

/// The built-in files of one kind, such as NICs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltinFiles {
    /// Name of the kind in error messages, such as `NIC`.
    pub(crate) what: &'static str,
    files: &'static [(&'static str, &'static str)],
}

macro_rules! builtin {
    ($what:literal, $folder:literal: $($name:literal)*) => {
        BuiltinFiles {
            what: $what,
            files: &[$(
                ($name, include_str!(concat!("../", $folder, "/", $name, ".toml")))
            ),*],
        }
    };
}

/// The built-in scenarios.
pub(crate) const SCENARIOS: BuiltinFiles = builtin!("scenario", "scenarios":
    "sun-3-60-to-3-60" "sun-3-280-to-3-60" "82586-receiver" "paced-into-82586"
    "lance-on-busy-bus" "sun-3-50-pair" "sun-3-50-gigabyte" "sun-3-50-four" "nfs-on-busy-wire"
    "saturated-long" "saturated-short" "saturated-mixed" "saturated-fairness"
    "10-gbe-pair" "10-gbe-pair-ipv6" "100-gbe-pair" "rss" "wan-tail-drop" "wan-red" "wan-codel"
    "wan-fq-codel" "wan-two-routers" "serial-typist"
    "vms-linear" "vms-exponential" "two-cables-and-a-bridge" "sun-gateway" "crowd"
    "blast-3-50-to-3-180" "blast-82586" "isa-receive" "3c503-4k" "3c503-32k"
    "nfs-1k-8-bit" "nfs-2k-8-bit" "nfs-4k-8-bit" "nfs-8k-8-bit"
    "nfs-1k-16-bit" "nfs-2k-16-bit" "nfs-4k-16-bit" "nfs-8k-16-bit");
/// Headings of groups in the list of built-in scenarios. Each pair has the name of a group's first
/// scenario, and the heading to print before it.
const SCENARIO_GROUPS: [(&str, &str); 9] = [
    ("sun-3-60-to-3-60", "The columns of the table of 1988"),
    ("82586-receiver", "NICs of 1988 and the bus behind them"),
    ("sun-3-50-pair", "Several hosts on one Ethernet"),
    ("saturated-long", "A saturated Ethernet"),
    ("10-gbe-pair", "Fast Ethernets of today"),
    ("wan-tail-drop", "Long paths and their queues"),
    ("serial-typist", "Serial lines, timers, bridges and routers"),
    ("blast-3-50-to-3-180", "Bulk transfers of the V system"),
    ("isa-receive", "PCs with ISA NICs, and NFS through them"),
];
/// The built-in machine files, each with the processor, the bus and the costs of a machine.
pub(crate) const MACHINES: BuiltinFiles = builtin!("machine", "machines":
    "sun-3-60" "sun-3-280" "sun-3-50" "sun-3-180" "sun-3-60-delayed" "station" "server" "486-isa");
/// The built-in NICs.
pub(crate) const NICS: BuiltinFiles = builtin!("NIC", "nics":
    "lance" "82586" "generic" "instant" "8390" "wd8003e" "wd8003ep" "3c503" "3c503-16");
/// The built-in media: cables, switches, serial lines and long paths.
pub(crate) const MEDIA: BuiltinFiles = builtin!("medium", "media":
    "ethernet-10" "hub-10" "link-1g" "link-10g" "link-100g" "serial-2400" "wan"
    "wan-red" "wan-codel" "wan-fq-codel");
/// The built-in queue disciplines for the NICs of routers and bridges.
pub(crate) const QUEUES: BuiltinFiles =
    builtin!("queue", "queues": "tail-drop" "tail-drop-50" "red" "codel" "fq-codel");
/// The built-in TCP configurations of hosts.
pub(crate) const TCPS: BuiltinFiles = builtin!("tcp", "tcps": "tahoe" "reno" "modern" "modern-ecn");

impl BuiltinFiles {
    /// Returns the text of the built-in file `name`, or an error that lists the known names.
    pub(crate) fn text(&self, name: &str) -> Result<&'static str, ParameterError> {
        let found = self.files.iter().find(|(known, _)| *known == name);
        found.map(|&(_, text)| text).ok_or_else(|| ParameterError::Unknown {
            what: self.what,
            name: name.to_owned(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns the names of all built-in files of this kind.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.files.iter().map(|&(name, _)| name)
    }
}

/// Returns the heading to print before a scenario, if the scenario is the first of a group.
pub(crate) fn heading_before(scenario: &str) -> Option<&'static str> {
    SCENARIO_GROUPS.iter().find(|(first, _)| *first == scenario).map(|&(_, heading)| heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_begins_with_a_scenario_in_the_order_of_the_list() {
        let names: Vec<_> = SCENARIOS.names().collect();
        let places = SCENARIO_GROUPS
            .map(|(first, _)| names.iter().position(|name| *name == first).expect(first));
        assert_eq!(places[0], 0, "each scenario has a heading above it");
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
    }
}
