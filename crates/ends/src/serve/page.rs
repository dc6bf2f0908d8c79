//! A minimal HTTP/1.1 server (RFC 9112) that serves one text, for programs that collect metrics.
//!
//! The server handles one connection at a time, and closes the connection after the response.
//! `MAX_TIME` limits how long a slow or silent peer can delay the next connection.

use super::listener::{ListenAt, ListenError, Listener};
use crate::interrupt::Interrupt;
use crate::socket::{Network, Options, Stream};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Maximum length of a request's head in bytes.
const MAX_REQUEST: usize = 8 << 10;
/// Maximum time to receive a request. The response then has the same time to be sent.
const MAX_TIME: Duration = Duration::from_secs(2);

/// An HTTP server that serves one text at one path, and status 404 at all other paths.
#[derive(Debug)]
pub struct TextPage {
    listener: Listener,
    path: &'static str,
    content_type: &'static str,
}

impl TextPage {
    /// Listens at `place` of the kernel's network for requests of `path`.
    ///
    /// # Errors
    /// The address is not available.
    pub fn bind(
        place: ListenAt,
        path: &'static str,
        content_type: &'static str,
    ) -> Result<Self, ListenError> {
        let listener = Listener::bind(&Network::Kernel, place, &Options::default())?;
        Ok(Self { listener, path, content_type })
    }

    /// Returns the address at which the server listens, with the actual port if port 0 was
    /// requested.
    ///
    /// # Errors
    /// The error of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves requests until `interrupt` is raised. Calls `make` for the text of each response.
    ///
    /// # Errors
    /// The listening socket failed.
    pub fn serve(&self, interrupt: &Interrupt, make: impl Fn() -> String) -> io::Result<()> {
        self.listener.accept_until(interrupt, |stream, _| {
            // An error ends only this peer's connection, so the server ignores it and accepts the
            // next one.
            let _ = self.answer(&stream, &make);
        })
    }

    fn answer(&self, stream: &Stream, make: &impl Fn() -> String) -> io::Result<()> {
        let request = read_head(stream)?;
        let mut words = request.split(|&byte| byte == b' ');
        let (method, target) = (words.next().unwrap_or(&[]), words.next().unwrap_or(&[]));
        let target = target.split(|&byte| byte == b'?').next().unwrap_or(&[]);
        let (status, text) = match method {
            b"GET" | b"HEAD" if target == self.path.as_bytes() => ("200 OK", make()),
            b"GET" | b"HEAD" => ("404 Not Found", format!("see {}\n", self.path)),
            _ => ("405 Method Not Allowed", "only GET is possible\n".to_owned()),
        };
        let (length, content_type) = (text.len(), self.content_type);
        let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: \
             {length}\r\n{allow}Connection: close\r\n\r\n"
        );
        if method != b"HEAD" {
            answer.push_str(&text);
        }
        write_until(stream, answer.as_bytes(), Instant::now() + MAX_TIME)
    }
}

/// Reads the request line and the header fields of an HTTP request, up to the empty line.
fn read_head(mut stream: &Stream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + MAX_TIME;
    let mut head = Vec::new();
    let mut piece = [0; 1 << 10];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > MAX_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => head.extend_from_slice(&piece[..count]),
        }
    }
    Ok(head)
}

/// Writes all of `rest`, or fails at `deadline`. A timeout for each single write would not suffice:
/// a peer that reads a few bytes at a time could block the server without limit.
fn write_until(mut stream: &Stream, mut rest: &[u8], deadline: Instant) -> io::Result<()> {
    while !rest.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    /// Starts a server of the text `one 1` at `/metrics`, sends `request`, and returns the
    /// response.
    fn answer(request: &[u8]) -> String {
        let place = ListenAt::Address("127.0.0.1:0".parse().unwrap());
        let page = TextPage::bind(place, "/metrics", "text/plain").unwrap();
        let address = page.local_addr().unwrap();
        let interrupt = Interrupt::default();
        thread::scope(|scope| {
            let server = scope.spawn(|| page.serve(&interrupt, || "one 1\n".to_owned()).unwrap());
            let mut peer = TcpStream::connect(address).unwrap();
            peer.write_all(request).unwrap();
            let mut text = Vec::new();
            // If the server does not read the whole request, it may reset the connection, so this
            // read may fail.
            let _ = peer.read_to_end(&mut text);
            interrupt.raise();
            server.join().unwrap();
            String::from_utf8(text).unwrap()
        })
    }

    #[test]
    fn the_text_is_served_at_its_path() {
        let text = answer(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\none 1\n"),
            "{text}"
        );
        assert!(text.contains("Content-Length: 6\r\n"), "{text}");
        let text = answer(b"HEAD /metrics?x HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    }

    #[test]
    fn a_peer_that_reads_cannot_extend_the_deadline() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near: Stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap().into();
        let mut far = listener.accept().unwrap().0;
        let now = Instant::now();
        write_until(&near, b"one", now + Duration::from_secs(60)).unwrap();
        // The write could succeed, because the peer has room for more data. It must fail, because
        // the deadline has passed.
        let late = write_until(&near, b"two", now).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one");
    }

    #[test]
    fn other_requests_are_refused() {
        assert!(answer(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(answer(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert_eq!(answer(&[b'x'; 9 << 10]), "", "too long, and without an end");
    }
}
