//! The path between the two ends of a bench with the kernel's TCP: the interface with its framing
//! and bit rate, and the segment size.

use super::common_options::CommonOptions;
use super::loopback;
use crate::bench_error::BenchError;
use crate::engines::network_interface::{
    Interface, additional_header_bytes, framing, line_rate, rate_in_words,
};
use crate::engines::remote_sink::RemoteSink;
use linerate_ends::socket::{self, Options};
use linerate_evidence::{BenchFacts, Framing, LineRate};
use linerate_link::kernel_tcp;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The path between the two ends of a bench with the kernel's TCP.
#[derive(Debug)]
pub(crate) struct Path {
    description: String,
    /// Number of data bytes in a full segment.
    payload: u32,
    framing: Framing,
    /// Bit rate of the interface; `None` over loopback, or if the driver reports none.
    line_rate: Option<LineRate>,
    /// Settings of this path that affect the results, by name.
    settings: BTreeMap<String, String>,
}

impl Path {
    /// Returns the path over loopback. A trial connection determines the payload of a full segment.
    pub(crate) fn loopback(common_options: &CommonOptions) -> Result<Self, BenchError> {
        let payload = trial(common_options)
            .map_err(|error| BenchError::io("a trial connection over the loopback", error))?;
        let options = options_length(common_options, loopback::ANYWHERE, payload);
        Ok(Self {
            description: "the kernel's TCP at both ends, over this machine's loopback".to_owned(),
            payload,
            framing: Framing::ethernet_in_memory(options),
            line_rate: None,
            settings: settings(common_options),
        })
    }

    /// Returns the path to the sink `far`. The payload of a full segment is read from the control
    /// connection to the sink.
    pub(crate) fn to(far: &RemoteSink, common_options: &CommonOptions) -> Result<Self, BenchError> {
        let remote = &far.remote;
        let payload = remote
            .segment_payload()
            .map_err(|error| BenchError::io("asking for the segment size", error))?;
        let address = remote.address();
        let options = options_length(common_options, address, payload);
        let is_here = remote.local_address().ip() == address.ip();
        let interface = Interface::towards(address.ip()).filter(|_| !is_here);
        let name = interface.as_ref().map_or("lo", |interface| interface.name.as_str());
        let mut settings = settings(common_options);
        settings.insert("sink".to_owned(), far.describe());
        settings.insert("interface".to_owned(), rate_in_words(name, interface.as_ref()));
        Ok(Self {
            description: format!(
                "the kernel's TCP at both ends, through {name} to a sink at {address}"
            ),
            payload,
            framing: framing(interface.as_ref(), options),
            line_rate: interface.as_ref().and_then(line_rate),
            settings,
        })
    }

    /// Converts the path to the facts that are the same for all runs.
    pub(crate) fn into_facts(self) -> BenchFacts {
        BenchFacts {
            description: self.description,
            segment_payload: self.payload,
            framing: self.framing,
            line_rate: self.line_rate,
            settings: self.settings,
        }
    }
}

/// Opens a trial connection over loopback, and returns the payload of a full segment in bytes.
fn trial(common_options: &CommonOptions) -> io::Result<u32> {
    let max_segment = Some(common_options.max_segment(loopback::ANYWHERE));
    let options = Options { max_segment, ..Options::default() };
    let listener = socket::listen(loopback::ANYWHERE, &options)?;
    let stream = socket::connect(listener.local_addr()?, &options, Duration::from_secs(5))?;
    kernel_tcp::max_segment(&stream)
}

/// Returns how many header bytes each segment has in addition to 40 bytes, as
/// [`additional_header_bytes`] defines them. Segments are assumed to have timestamps if the payload
/// leaves room for them in the announced MSS.
fn options_length(common_options: &CommonOptions, address: SocketAddr, payload: u32) -> u32 {
    /// Number of bytes of the timestamp option with padding. The kernel's data segments usually
    /// have no other option.
    const TIMESTAMPS: u32 = 12;
    let announced = u32::from(common_options.max_segment(address));
    let options = if payload + TIMESTAMPS <= announced { TIMESTAMPS } else { 0 };
    additional_header_bytes(options, address.is_ipv6())
}

/// Returns the settings that are recorded for every path.
fn settings(common_options: &CommonOptions) -> BTreeMap<String, String> {
    let congestion = common_options.congestion.clone().unwrap_or_else(|| "unknown".to_owned());
    let granted =
        "the kernel counts its overhead against a buffer, and grants twice the requested size";
    BTreeMap::from([
        ("congestion control".to_owned(), congestion),
        ("granted buffers".to_owned(), granted.to_owned()),
        ("TCP_NODELAY".to_owned(), "off (the default)".to_owned()),
    ])
}
