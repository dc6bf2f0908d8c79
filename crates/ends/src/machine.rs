//! Settings and properties of this machine, as its kernel reports them.

use std::fs;

/// Returns the frequency governor of CPU 0, such as `performance`; `None` if the kernel does not
/// control the frequency.
#[must_use]
pub fn governor() -> Option<String> {
    line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
}

/// Returns the kernel's name, release and build, separated by spaces.
#[must_use]
pub fn kernel() -> String {
    let part = |name: &str| line_of(&format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {} {}", part("ostype"), part("osrelease"), part("version")).trim().to_owned()
}

/// Returns a kernel setting by its `sysctl` name, with single spaces between its values; `None` if
/// the kernel has no such setting.
#[must_use]
pub fn sysctl(name: &str) -> Option<String> {
    let value = line_of(&format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the content of the file at `path`, which usually is one line, without surrounding white
/// space. Returns `None` if the file cannot be read.
#[must_use]
pub fn line_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}
