//! Calls that time out must fail with the right error, and so must non-blocking calls that would
//! have to wait.

use crate::networks::{ABSENT, LEFT, connection, networks};
use linerate_sockets::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(1);

#[test]
fn a_read_would_block_after_its_timeout() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    near.set_read_timeout(Some(SHORT)).unwrap();
    let error = near.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let inside = error.get_ref().unwrap().downcast_ref::<Error>();
    assert_eq!(inside, Some(&Error::TimedOut(SHORT)));
    assert_eq!(near.peek(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    near.set_read_timeout(None).unwrap();
    far.write_all(b"late").unwrap();
    near.read_exact(&mut [0; 4]).unwrap();
}

#[test]
fn a_write_would_block_after_its_timeout() {
    let (left, right) = networks();
    let (_near, mut far) = connection(&left, &right);
    far.set_write_timeout(Some(SHORT)).unwrap();
    let error = loop {
        if let Err(error) = far.write(&[0; 100_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn unread_data_ends_the_connection_after_the_user_timeout() {
    let (left, right) = networks();
    let (_near, mut far) = connection(&left, &right);
    far.set_user_timeout(Some(SHORT)).unwrap();
    assert_eq!(far.user_timeout().unwrap(), Some(SHORT));
    let error = loop {
        if let Err(error) = far.write(&[0; 100_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_zero_timeout_is_refused() {
    let (left, right) = networks();
    let (near, _far) = connection(&left, &right);
    let kind = |error: std::io::Error| error.kind();
    assert_eq!(
        near.set_read_timeout(Some(Duration::ZERO)).map_err(kind),
        Err(ErrorKind::InvalidInput)
    );
    assert_eq!(
        near.set_write_timeout(Some(Duration::ZERO)).map_err(kind),
        Err(ErrorKind::InvalidInput)
    );
    assert_eq!(
        near.set_user_timeout(Some(Duration::ZERO)).map_err(kind),
        Err(ErrorKind::InvalidInput)
    );
    let address = SocketAddr::from((LEFT, 9));
    let refused = left.connect_timeout(&address, Duration::ZERO).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn connecting_to_an_absent_host_times_out() {
    let (_left, right) = networks();
    let error = right.connect_timeout(&SocketAddr::from((ABSENT, 80)), SHORT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().starts_with("10.0.0.77:80 did not answer within 1ms"), "{error}");
}

#[test]
fn non_blocking_calls_do_not_wait() {
    let (left, right) = networks();
    let (mut near, mut far) = connection(&left, &right);
    near.set_nonblocking(true).unwrap();
    assert_eq!(near.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut written = 0;
    let error = loop {
        match near.write(&[5; 10_000]) {
            Ok(count) => written += count,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.get_ref().is_none(), "a frequent error needs no allocation");
    near.set_nonblocking(false).unwrap();
    near.shutdown(std::net::Shutdown::Write).unwrap();
    let mut received = Vec::new();
    far.read_to_end(&mut received).unwrap();
    assert_eq!(received, vec![5; written]);
}

#[test]
fn a_non_blocking_accept_does_not_wait() {
    let (left, right) = networks();
    let listener = left.bind((LEFT, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut far = right.connect(listener.local_addr().unwrap()).unwrap();
    let mut near = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    };
    far.write_all(b"x").unwrap();
    near.read_exact(&mut [0]).unwrap();
}
