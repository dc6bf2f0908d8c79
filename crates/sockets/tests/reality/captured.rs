//! Captures the frames of our host in a file, and checks them with tshark.

use linerate_link::capture_file::CaptureWriter;
use linerate_link::{Capture, Tap};
use linerate_sockets::{Net, StackConfig};
use linerate_testkit::tshark;
use std::path::PathBuf;
use tempfile::TempDir;

/// The capture file of a network, in a temporary folder.
pub(crate) struct Captured {
    folder: TempDir,
}

impl Captured {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("host.pcapng")
    }

    /// Starts a network on the device, and captures its frames.
    pub(crate) fn start(&self, tap: Tap, config: StackConfig) -> Net {
        let writer = CaptureWriter::create(self.path()).unwrap();
        Net::builder(Capture::new(tap, "lr0", writer), config)
            .when_ended(|link| link.into_parts().1.finish().unwrap())
            .start()
            .unwrap()
    }

    /// Ends the network. Asserts that tshark finds no error in the captured frames, and that each
    /// of the filters `expected` matches at least one frame.
    pub(crate) fn end(self, net: &Net, expected: &[String]) {
        net.shutdown();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        tshark::assert_accepts(&self.path(), "_ws.expert.severity == \"Error\"", &expected);
    }
}
