//! A program written for `std::net`. It is compiled twice: with the sockets of `std::net`, and with
//! ours.

/// The server and the client of a key-value store with a text protocol. The server has a thread for
/// each client. The types of the sockets are parameters of the macro; the rest of the source text
/// is the same for both implementations.
macro_rules! store {
    ($name:ident, $listener:ty, $stream:ty) => {
        pub(crate) mod $name {
            use std::collections::BTreeMap;
            use std::io::{self, BufRead, BufReader, BufWriter, Write};
            use std::sync::Mutex;
            use std::thread;
            use std::time::Duration;

            type Words = Mutex<BTreeMap<String, String>>;

            pub(crate) fn serve(listener: &$listener, clients: usize) -> io::Result<()> {
                let words = Words::default();
                thread::scope(|scope| {
                    for stream in listener.incoming().take(clients) {
                        let stream = stream?;
                        let words = &words;
                        scope.spawn(move || serve_client(&stream, words));
                    }
                    Ok(())
                })
            }

            fn serve_client(stream: &$stream, words: &Words) -> io::Result<()> {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                let mut answers = BufWriter::new(stream.try_clone()?);
                for line in BufReader::new(stream).lines() {
                    let line = line?;
                    let mut line = line.split(' ');
                    let mut words = words.lock().unwrap();
                    match (line.next(), line.next(), line.next()) {
                        (Some("put"), Some(word), Some(meaning)) => {
                            words.insert(word.to_owned(), meaning.to_owned());
                            writeln!(answers, "ok")?;
                        }
                        (Some("get"), Some(word), None) => {
                            writeln!(
                                answers,
                                "{}",
                                words.get(word).map_or("?", |meaning| meaning)
                            )?;
                        }
                        _ => writeln!(answers, "what?")?,
                    }
                    answers.flush()?;
                }
                Ok(())
            }

            pub(crate) fn ask(stream: $stream, questions: &[String]) -> io::Result<Vec<String>> {
                stream.set_nodelay(true)?;
                let mut answers = BufReader::new(stream.try_clone()?).lines();
                questions
                    .iter()
                    .map(|request| {
                        writeln!(&stream, "{request}")?;
                        answers.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
                    })
                    .collect()
            }
        }
    };
}

store!(over_the_system, std::net::TcpListener, std::net::TcpStream);
store!(over_linerate, linerate_sockets::TcpListener, linerate_sockets::TcpStream);

/// Returns the requests that the client sends: 500 store a value, 500 read these values, one reads
/// a value that does not exist, and one is invalid.
pub(crate) fn questions() -> Vec<String> {
    let put = (0..500).map(|number| format!("put word{number} meaning{number}"));
    let get = (0..=500).map(|number| format!("get word{number}"));
    put.chain(get).chain(["forget everything else".to_owned()]).collect()
}
