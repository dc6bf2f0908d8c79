//! Tests of other crates over the sockets of this crate: HTTP by hyper, and TLS by rustls, on paths
//! that lose packets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use linerate_tokio::net::{TcpListener, TcpStream};
use linerate_tokio::sim::Network;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_local;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::time_provider::TimeProvider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

fn lossy(seed: u64) -> Network {
    let link = "loss=1%,delay=10ms,rate=50Mb/s".parse().unwrap();
    Network::builder().seed(seed).link(link).build()
}

/// Answers GET with `length` bytes, and POST with the length of its body.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answer = match (request.method(), request.uri().path().strip_prefix("/bytes/")) {
        (&Method::GET, Some(length)) => vec![7; length.parse().unwrap()],
        (&Method::POST, _) => {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            body.len().to_string().into_bytes()
        }
        _ => {
            let missing = Response::builder().status(StatusCode::NOT_FOUND);
            return Ok(missing.body(Full::default()).unwrap());
        }
    };
    Ok(Response::new(answer.into()))
}

async fn serve_http() {
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        spawn_local(
            hyper::server::conn::http1::Builder::new()
                // A date header would contain the time of the real clock, which differs between
                // runs.
                .auto_date_header(false)
                .serve_connection(TokioIo::new(stream), service_fn(answer)),
        );
    }
}

/// Sends three requests on one connection. Returns the status and the body of each answer.
async fn ask_http() -> Vec<(StatusCode, Bytes)> {
    let stream = TcpStream::connect("server:80").await.unwrap();
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    spawn_local(connection);
    let mut answers = Vec::new();
    for (method, path, body) in [
        (Method::GET, "/bytes/1000000", 0),
        (Method::POST, "/count", 300_000),
        (Method::GET, "/nothing", 0),
    ] {
        let body = Full::new(Bytes::from(vec![7; body]));
        let request = Request::builder().method(method).uri(path).header("host", "server");
        let response = sender.send_request(request.body(body).unwrap()).await.unwrap();
        let status = response.status();
        answers.push((status, response.into_body().collect().await.unwrap().to_bytes()));
    }
    answers
}

#[test]
fn hyper_serves_and_asks_and_equal_seeds_give_equal_traces() {
    let run = |seed| {
        let network = lossy(seed);
        network.host("server").spawn(serve_http());
        let answers = network.host("client").run(ask_http());
        assert_eq!(answers[0], (StatusCode::OK, Bytes::from(vec![7; 1_000_000])));
        assert_eq!(answers[1], (StatusCode::OK, Bytes::from("300000")));
        assert_eq!(answers[2].0, StatusCode::NOT_FOUND);
        let [server, client] = ["server", "client"].map(|name| network.host(name));
        assert!(network.path_counters(&server, &client).lost > 0);
        network.trace()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// A fixed clock for checking certificates. The real time may be outside their validity.
#[derive(Debug)]
struct In2027;

impl TimeProvider for In2027 {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000)))
    }
}

/// Returns the TLS configurations of the server and the client. The server's certificate, for the
/// name `server`, is self-signed.
fn tls() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let certificate = CertificateDer::from(&include_bytes!("data/server.cert.der")[..]);
    let key = PrivateKeyDer::try_from(&include_bytes!("data/server.key.der")[..]).unwrap();
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_details(Arc::clone(&provider), Arc::new(In2027))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_details(provider, Arc::new(In2027))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

#[test]
fn rustls_encrypts_both_directions_of_a_lossy_path() {
    let (server, client) = tls();
    let network = lossy(3);
    network.host("server").spawn(async move {
        let listener = TcpListener::bind("0.0.0.0:443").await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let stream = TlsAcceptor::from(server).accept(stream).await.unwrap();
        let (mut read, mut write) = tokio::io::split(stream);
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let received = network.host("client").run(async move {
        let stream = TcpStream::connect("server:443").await.unwrap();
        let name = ServerName::try_from("server").unwrap();
        let stream = TlsConnector::from(client).connect(name, stream).await.unwrap();
        let (mut read, mut write) = tokio::io::split(stream);
        let sender = spawn_local(async move {
            write.write_all(&[7; 500_000]).await.unwrap();
            write.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        read.read_to_end(&mut received).await.unwrap();
        sender.await.unwrap();
        received
    });
    assert!(received == [7; 500_000], "{} bytes", received.len());
}
