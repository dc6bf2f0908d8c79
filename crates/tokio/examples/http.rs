//! An HTTP client and an HTTP server of hyper, over a path with 50 ms of delay and 1 % loss, in
//! virtual time.
//!
//! ```sh
//! cargo run -p linerate-tokio --example http
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example shows what it does")]

use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use linerate_tokio::net::{TcpListener, TcpStream};
use linerate_tokio::sim::Network;
use std::convert::Infallible;
use tokio::task::spawn_local;
use tokio::time::Instant;

async fn page(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let text = format!("You asked for {}.\n", request.uri()).repeat(10_000);
    Ok(Response::new(Full::new(text.into())))
}

async fn serve() {
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let http = hyper::server::conn::http1::Builder::new();
        spawn_local(http.serve_connection(TokioIo::new(stream), service_fn(page)));
    }
}

async fn ask() {
    let stream = TcpStream::connect("server:80").await.unwrap();
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    spawn_local(connection);
    for path in ["/first", "/second"] {
        let start = Instant::now();
        let request = Request::get(path).header("host", "server").body(Empty::<Bytes>::new());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        println!("{path}: {status}, {} bytes in {:?}", body.len(), start.elapsed());
    }
}

fn main() {
    let link = "delay=50ms,loss=1%,rate=100Mb/s".parse().unwrap();
    let network = Network::builder().seed(7).link(link).build();
    network.host("server").spawn(serve());
    network.host("client").run(ask());
}
