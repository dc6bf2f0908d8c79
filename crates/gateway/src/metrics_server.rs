//! The HTTP server of a gateway's metrics (RFC 9112).
//!
//! The server never blocks, because its thread also relays the flows. It reads from a connection or
//! writes to it when the poller reports that this is possible. A connection is closed after one
//! request.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Maximum number of clients. At the maximum, a new client replaces the oldest client. Otherwise,
/// clients that send no request would lock out all others.
const CLIENTS: usize = 16;
/// Maximum length of a request's head in bytes.
const LARGEST_HEAD: usize = 8 << 10;
/// The path at which the metrics are served.
const PATH: &[u8] = b"/metrics";

/// The listening socket for metrics, and the connections of its clients.
#[derive(Debug)]
pub(crate) struct MetricsServer {
    pub(crate) listener: TcpListener,
    clients: [Option<Client>; CLIENTS],
    /// Index in `clients` for the next client. The indices are used in rotation. If the entry at
    /// this index is occupied, its client is therefore the oldest one, and is replaced.
    next: usize,
}

/// The connection of one client.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// The part of the request's head that has arrived. Reading stops when at least `LARGEST_HEAD`
    /// bytes have arrived. One read adds up to 1 KiB, so the head may exceed that limit by less
    /// than 1 KiB.
    head: Vec<u8>,
    /// The response; empty until the head of the request is complete.
    answer: Vec<u8>,
    /// Number of bytes of the response that have been written.
    written: usize,
}

impl MetricsServer {
    /// Listens at an address of this machine, without blocking.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: [const { None }; CLIENTS], next: 0 })
    }

    /// Accepts a connection. Returns its index in `clients`, and its stream, which the caller must
    /// add to a poller.
    pub(crate) fn accept(&mut self) -> Option<(usize, &TcpStream)> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        let place = self.next;
        self.next = (place + 1) % CLIENTS;
        let client = Client { stream, head: Vec::new(), answer: Vec::new(), written: 0 };
        Some((place, &self.clients[place].insert(client).stream))
    }

    /// Continues to receive the request or to send the response of the client at index `place`.
    /// Closes the connection after the response or an error. `make` returns the text of the
    /// metrics.
    pub(crate) fn advance(&mut self, place: usize, make: impl FnOnce() -> String) {
        let Some(place) = self.clients.get_mut(place) else { return };
        if let Some(client) = place
            && !client.advance(make).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
        {
            *place = None;
        }
    }
}

impl Client {
    /// Reads the request, then writes the response. Returns the error `WouldBlock` if the client
    /// must first send or receive more; the caller then calls this function again.
    fn advance(&mut self, make: impl FnOnce() -> String) -> io::Result<()> {
        if self.answer.is_empty() {
            self.read_head()?;
            self.answer = answer(&self.head, make);
        }
        while self.written < self.answer.len() {
            match uninterrupted(|| self.stream.write(&self.answer[self.written..]))? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
        }
        Ok(())
    }

    /// Reads the head of the request: up to the empty line that ends it, or up to the limit.
    fn read_head(&mut self) -> io::Result<()> {
        let mut piece = [0; 1 << 10];
        while !self.head.windows(4).any(|end| end == b"\r\n\r\n") && self.head.len() < LARGEST_HEAD
        {
            match uninterrupted(|| self.stream.read(&mut piece))? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.head.extend_from_slice(&piece[..count]),
            }
        }
        Ok(())
    }
}

fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Returns the response to a request.
fn answer(head: &[u8], make: impl FnOnce() -> String) -> Vec<u8> {
    let mut words = head.split(|&byte| byte == b' ');
    let (method, target) = (words.next().unwrap_or(&[]), words.next().unwrap_or(&[]));
    let path = target.split(|&byte| byte == b'?').next().unwrap_or(&[]);
    let (status, text) = match method {
        _ if head.len() >= LARGEST_HEAD => ("431 Request Header Fields Too Large", String::new()),
        b"GET" | b"HEAD" if path == PATH => ("200 OK", make()),
        b"GET" | b"HEAD" => ("404 Not Found", "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", "only GET is possible\n".to_owned()),
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    if method != b"HEAD" {
        answer.push_str(&text);
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server, and returns it with its address.
    fn server() -> (MetricsServer, SocketAddr) {
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.listener.local_addr().unwrap();
        (server, address)
    }

    fn metrics() -> String {
        "flows 1\n".to_owned()
    }

    /// Connects to the server. Returns the client's stream, and the index of the connection at the
    /// server.
    fn client(server: &mut MetricsServer, address: SocketAddr) -> (TcpStream, usize) {
        let stream = TcpStream::connect(address).unwrap();
        let (place, _) = server.accept().unwrap();
        (stream, place)
    }

    fn answered(request: &[u8]) -> String {
        let (mut server, address) = server();
        let (mut stream, place) = client(&mut server, address);
        stream.write_all(request).unwrap();
        server.advance(place, metrics);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_metrics_are_served_at_their_path() {
        let text = answered(b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains("Content-Length: 8\r\n") && text.ends_with("\r\n\r\nflows 1\n"));
        let text = answered(b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(answered(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        let text = answered(b"POST /metrics HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 405 ") && text.contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(answered(&[b'x'; LARGEST_HEAD]).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn a_silent_client_delays_no_other() {
        let (mut server, address) = server();
        let (mut silent, first) = client(&mut server, address);
        server.advance(first, metrics);
        silent.write_all(b"GET /met").unwrap();
        server.advance(first, metrics);
        assert!(server.clients[first].is_some(), "it can continue");
        let (mut stream, second) = client(&mut server, address);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        server.advance(second, metrics);
        assert!(server.clients[second].is_none(), "it was answered");
        silent.write_all(b"rics HTTP/1.1\r\n\r\n").unwrap();
        server.advance(first, metrics);
        let mut text = String::new();
        silent.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("flows 1\n"), "{text}");
    }

    #[test]
    fn clients_are_limited_and_the_oldest_is_replaced() {
        let (mut server, address) = server();
        let (mut oldest, place) = client(&mut server, address);
        let others: Vec<_> = (1..CLIENTS).map(|_| client(&mut server, address)).collect();
        let (_newest, replaced) = client(&mut server, address);
        assert_eq!((place, others.len()), (replaced, CLIENTS - 1));
        assert_eq!(oldest.read(&mut [0]).unwrap(), 0, "its connection was closed");
        server.advance(CLIENTS, metrics);
    }

    #[test]
    fn an_answer_continues_when_the_client_reads() {
        let (mut server, address) = server();
        let (mut stream, place) = client(&mut server, address);
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let long = 32 << 20;
        server.advance(place, || "x".repeat(long));
        assert!(server.clients[place].is_some(), "no socket buffer has room for the answer");
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text.len()
        });
        while server.clients[place].is_some() {
            server.advance(place, || unreachable!("the answer exists"));
        }
        assert!(reading.join().unwrap() > long);
    }
}
