//! What lies between the two ends: the interface, its framing and rate, and how much a segment
//! carries.

use super::loopback;
use super::pins::Pins;
use crate::bench_error::BenchError;
use crate::engines::network_interface::{Interface, framing, line_rate, rate_in_words};
use crate::engines::remote_sink::Far;
use linerate_ends::socket::{self, Options};
use linerate_evidence::{BenchFacts, Framing, LineRate};
use linerate_link::kernel_tcp;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The way from one end to the other.
#[derive(Debug)]
pub(crate) struct Way {
    description: String,
    payload: u32,
    framing: Framing,
    line_rate: Option<LineRate>,
    settings: BTreeMap<String, String>,
}

impl Way {
    /// Over this machine's loopback. A trial connection tells how much a segment carries.
    pub(crate) fn loopback(pins: &Pins) -> Result<Self, BenchError> {
        let payload = trial(pins)
            .map_err(|error| BenchError::io("a trial connection over the loopback", error))?;
        let options = options_length(pins, loopback::ANYWHERE, payload);
        Ok(Self {
            description: "the kernel's TCP at both ends, over this machine's loopback".to_owned(),
            payload,
            framing: Framing::ethernet_in_memory(options),
            line_rate: None,
            settings: settings(pins),
        })
    }

    /// To the sink at the far end.
    pub(crate) fn to(far: &Far, pins: &Pins) -> Result<Self, BenchError> {
        let remote = &far.remote;
        let payload = remote
            .segment_payload()
            .map_err(|error| BenchError::io("asking for the segment size", error))?;
        let address = remote.address();
        let options = options_length(pins, address, payload);
        let is_here = remote.local_address().ip() == address.ip();
        let interface = Interface::towards(address.ip()).filter(|_| !is_here);
        let name = interface.as_ref().map_or("lo", |interface| interface.name.as_str());
        let mut settings = settings(pins);
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

    /// What stays the same for all runs.
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

/// The payload of a full segment over the loopback.
fn trial(pins: &Pins) -> io::Result<u32> {
    let max_segment = Some(pins.max_segment(loopback::ANYWHERE));
    let options = Options { max_segment, ..Options::default() };
    let listener = socket::listen(loopback::ANYWHERE, &options)?;
    let stream = socket::connect(listener.local_addr()?, &options, Duration::from_secs(5))?;
    kernel_tcp::max_segment(&stream)
}

/// Bytes of headers that every segment carries beyond IPv4's and TCP's bare ones: the TCP options,
/// and what an IPv6 header is longer.
fn options_length(pins: &Pins, address: SocketAddr, payload: u32) -> u32 {
    /// Timestamps, aligned: the only option of a data segment of the kernel's.
    const TIMESTAMPS: u32 = 12;
    let announced = u32::from(pins.max_segment(address));
    let options = if payload + TIMESTAMPS <= announced { TIMESTAMPS } else { 0 };
    options + if address.is_ipv6() { 20 } else { 0 }
}

fn settings(pins: &Pins) -> BTreeMap<String, String> {
    let congestion = pins.congestion.clone().unwrap_or_else(|| "unknown".to_owned());
    let granted = "the kernel counts its own overhead against a buffer, and so grants twice what is asked for";
    BTreeMap::from([
        ("congestion control".to_owned(), congestion),
        ("granted buffers".to_owned(), granted.to_owned()),
        ("TCP_NODELAY".to_owned(), "off, as a program finds it".to_owned()),
    ])
}
