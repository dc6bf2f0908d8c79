//! The threads that drive a linerate host, which are found in `/proc` by their name.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The name of the threads that drive one linerate host, which is unique within the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostThreads(Arc<str>);

impl HostThreads {
    /// Creates a unique name. It has at most 15 bytes, because the kernel truncates a longer thread
    /// name.
    pub(super) fn unique() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed) % 1_000_000;
        Self(format!("linerate-{number}").into())
    }

    /// Returns the name of the threads that drive the host.
    pub(super) fn name(&self) -> &str {
        &self.0
    }

    /// Returns the ID in `/proc` of the thread with this name; `None` if no such thread runs.
    pub(crate) fn number(&self) -> Option<u32> {
        let tasks = fs::read_dir("/proc/self/task").ok()?;
        let mut numbers =
            tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok());
        numbers.find(|number| {
            let name = fs::read_to_string(format!("/proc/self/task/{number}/comm"));
            name.is_ok_and(|name| name.trim_end() == &*self.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_by_its_name() {
        let threads = HostThreads::unique();
        assert_eq!(threads.number(), None);
        let name = threads.name().to_owned();
        let found = std::thread::Builder::new().name(name).spawn(move || threads.number()).unwrap();
        assert!(found.join().unwrap().is_some());
    }
}
