//! An echo server and a client, on two hosts that a memory link connects and the runtime drives.
//!
//! ```sh
//! cargo run -p linerate-tokio --example tokio_echo
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use linerate_link::memory::{MemoryConfig, pair};
use linerate_tokio::net::{TcpListener, TcpStream};
use linerate_tokio::{Net, StackConfig};
use std::error::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (left, right) = pair(MemoryConfig::default())?;
    let one = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
    let two = StackConfig::new("02:00:00:00:00:02".parse()?, "10.0.0.2/24".parse()?);
    let server = Net::builder(left, one).start()?;
    let client = Net::builder(right, two).start()?;

    let listener = server.scope(TcpListener::bind("10.0.0.1:7")).await?;
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await?;
            println!("connection from {peer}");
            tokio::spawn(async move {
                let (mut read, mut write) = stream.into_split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
        #[allow(unreachable_code, reason = "gives the loop the type of its errors")]
        std::io::Result::Ok(())
    });

    let mut stream = client.scope(TcpStream::connect("10.0.0.1:7")).await?;
    stream.write_all(b"line rate").await?;
    stream.shutdown().await?;
    let mut echo = String::new();
    stream.read_to_string(&mut echo).await?;
    println!("the client received: {echo}");
    Ok(())
}
