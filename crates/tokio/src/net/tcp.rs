//! The read and write halves of a connection, like `tokio::net::tcp`.

use super::TcpStream;
use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The read half of a borrowed stream ([`TcpStream::split`]). Dereferences to the whole stream.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// sim::lo(async {
///     let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
///     let mut client = TcpStream::connect("127.0.0.1:7").await.unwrap();
///     let (mut server, _) = listener.accept().await.unwrap();
///     client.write_all(b"ping").await.unwrap();
///     let (mut read, mut write) = server.split();
///     let mut bytes = [0; 4];
///     read.read_exact(&mut bytes).await.unwrap();
///     write.write_all(&bytes).await.unwrap();
///     client.read_exact(&mut bytes).await.unwrap();
///     assert_eq!(&bytes, b"ping");
/// });
/// ```
#[derive(Debug)]
pub struct ReadHalf<'a>(pub(super) &'a TcpStream);

/// The write half of a borrowed stream ([`TcpStream::split`]). Dereferences to the whole stream.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// sim::lo(async {
///     let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
///     let mut client = TcpStream::connect("127.0.0.1:7").await.unwrap();
///     let (mut server, _) = listener.accept().await.unwrap();
///     let (mut read, mut write) = client.split();
///     // The data exceeds the buffers, so it is written and read concurrently.
///     let (sent, received) = (vec![7; 4 << 20], &mut vec![0; 4 << 20]);
///     let echo = async {
///         let (mut read, mut write) = server.split();
///         tokio::io::copy(&mut read, &mut write).await
///     };
///     let transfer = async {
///         let (sent, received) = tokio::join!(write.write_all(&sent), read.read_exact(received));
///         sent.and(received.map(drop))
///     };
///     tokio::select! {
///         biased;
///         outcome = transfer => outcome.unwrap(),
///         _ = echo => panic!("the client closes nothing"),
///     }
///     assert!(received.iter().all(|&byte| byte == 7));
/// });
/// ```
#[derive(Debug)]
pub struct WriteHalf<'a>(pub(super) &'a TcpStream);

/// A read half that shares ownership of its stream ([`TcpStream::into_split`]). Dereferences to the
/// whole stream.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// sim::lo(async {
///     let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
///     let stream = TcpStream::connect("127.0.0.1:7").await.unwrap();
///     let (read, mut write) = listener.accept().await.unwrap().0.into_split();
///     // The halves can be moved to different tasks, and put together again.
///     write.write_all(b"hello").await.unwrap();
///     drop(read.reunite(write).unwrap());
///     let (mut read, _write) = stream.into_split();
///     let mut text = String::new();
///     read.read_to_string(&mut text).await.unwrap();
///     assert_eq!(text, "hello");
/// });
/// ```
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<TcpStream>,
}

/// A write half that shares ownership of its stream ([`TcpStream::into_split`]). Dereferences to
/// the whole stream. Dropping the half closes the sending direction.
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// sim::lo(async {
///     let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
///     let mut client = TcpStream::connect("127.0.0.1:7").await.unwrap();
///     let (mut server, _) = listener.accept().await.unwrap();
///     let (_read, mut write) = client.into_split();
///     tokio::task::spawn_local(async move {
///         write.write_all(b"the end").await.unwrap();
///         // Here the half is dropped, which closes the sending direction.
///     });
///     let mut text = String::new();
///     server.read_to_string(&mut text).await.unwrap();
///     assert_eq!(text, "the end");
/// });
/// ```
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    shuts_down: bool,
}

impl OwnedReadHalf {
    pub(super) const fn new(stream: Arc<TcpStream>) -> Self {
        Self { stream }
    }

    /// Joins this half and the write half of its stream, and returns the stream.
    ///
    /// # Errors
    /// If the halves belong to different streams. The error contains both halves.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.stream, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        Arc::try_unwrap(self.stream).map_err(|stream| {
            // Unreachable: `try_unwrap` fails only if the stream has another owner. The halves are
            // its only owners, and the write half has just been dropped.
            ReuniteError(Self::new(Arc::clone(&stream)), OwnedWriteHalf::new(stream))
        })
    }
}

impl OwnedWriteHalf {
    pub(super) const fn new(stream: Arc<TcpStream>) -> Self {
        Self { stream, shuts_down: true }
    }

    /// Drops the half, but leaves the sending direction open. An ordinary drop closes it.
    pub fn forget(mut self) {
        self.shuts_down = false;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shuts_down {
            // The call fails if the connection has already ended. There is nothing to shut down
            // then, so the error is ignored.
            let _ = self.stream.close_direction(Shutdown::Write);
        }
    }
}

/// The error of [`OwnedReadHalf::reunite`]: two halves that belong to different streams.
///
/// ```
/// use linerate_tokio::net::tcp::ReuniteError;
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim;
///
/// sim::lo(async {
///     let listener = TcpListener::bind("127.0.0.1:7").await.unwrap();
///     let (read, write) = TcpStream::connect("127.0.0.1:7").await.unwrap().into_split();
///     let (_other_read, other_write) = listener.accept().await.unwrap().0.into_split();
///     let ReuniteError(read, _other_write) = read.reunite(other_write).unwrap_err();
///     assert!(read.reunite(write).is_ok());
/// });
/// ```
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves belong to different streams: reunite those of one `into_split`")
    }
}

impl Error for ReuniteError {}

impl AsyncRead for ReadHalf<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read_shared(context, into)
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.poll_read_shared(context, into)
    }
}

impl AsyncWrite for WriteHalf<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_shared(context, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_vectored_shared(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.close_direction(Shutdown::Write))
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write_shared(context, data)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write_vectored_shared(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = self.stream.close_direction(Shutdown::Write);
        self.shuts_down &= closed.is_err();
        Poll::Ready(closed)
    }
}

impl Deref for ReadHalf<'_> {
    type Target = TcpStream;
    fn deref(&self) -> &TcpStream {
        self.0
    }
}

impl Deref for WriteHalf<'_> {
    type Target = TcpStream;
    fn deref(&self) -> &TcpStream {
        self.0
    }
}

impl Deref for OwnedReadHalf {
    type Target = TcpStream;
    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Deref for OwnedWriteHalf {
    type Target = TcpStream;
    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}
