//! Tests of writes and reads by which applications access the socket buffers without copying data.

use bytes::Bytes;
use linerate_stack::{Error, Event};
use linerate_tcp::Event as TcpEvent;
use linerate_testkit::transfer::{established, listen};
use linerate_testkit::{Access, Pair, Setup, Side, pattern};
use linerate_units::Duration;

#[test]
fn copies_and_zero_copy_calls_form_one_stream() {
    let mut pair = Pair::new(&Setup::default(), |_, _| {});
    let listener = listen(&mut pair);
    let (left, right) = established(&mut pair, listener);
    let (mut written, mut read) = (0, 0);
    let mut modes = Vec::new();
    let done = |pair: &mut Pair| {
        let now = pair.now;
        for size in [100, 3_000, 9_000] {
            let part: Vec<_> = (written..(written + size).min(500_000)).map(pattern).collect();
            written +=
                Access::at(written).write_socket(pair.stack(Side::Left), now, left, &part).unwrap();
        }
        let mut into = [0; 8_000];
        modes.push(Access::at(read));
        match Access::at(read).read_socket(pair.stack(Side::Right), now, right, &mut into) {
            Ok(count) => {
                assert!(
                    into[..count].iter().copied().eq((read..read + count).map(pattern)),
                    "after {read}"
                );
                read += count;
            }
            Err(error) => assert_eq!(error, Error::WouldBlock),
        }
        read == 500_000
    };
    assert!(pair.run_until(Duration::from_secs(10), done));
    assert!(modes.contains(&Access::InPlace) && modes.contains(&Access::Copied));
}

/// If no buffer memory is available, a write of shared data waits for memory: its writer gets a
/// writable event later. An empty write does not wait.
#[test]
fn a_shared_write_without_memory_waits_for_it() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.buffer_bytes = 8 << 10);
    let listener = listen(&mut pair);
    let [(one, _), (two, _), (three, _)] = [(); 3].map(|()| established(&mut pair, listener));
    while pair.stack(Side::Left).poll_event().is_some() {}
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    for handle in [one, two] {
        assert_eq!(stack.tcp_write(now, handle, &[7; 4_000]), Ok(4_000));
    }
    assert_eq!(stack.tcp_write_shared(now, three, &mut Bytes::new()), Ok(0));
    assert_eq!(stack.tcp_write_with(now, three, 0, |_| 0), Ok(0));
    assert_eq!(stack.counters().tcp_extra.memory_waits, 0);
    let mut data = Bytes::from_static(&[7; 100]);
    assert_eq!(stack.tcp_write_shared(now, three, &mut data), Ok(0));
    assert_eq!(stack.counters().tcp_extra.memory_waits, 1);
    let is_told = |pair: &mut Pair| {
        pair.stack(Side::Left).poll_event() == Some(Event::Tcp(three, TcpEvent::Writable))
    };
    assert!(pair.run_until(Duration::from_secs(3), is_told));
}

/// If no buffer memory is available, an in-place write waits for memory: its writer gets a writable
/// event later. A writer that gets memory but writes nothing into it does not wait, so it gets no
/// event.
#[test]
fn an_in_place_write_without_memory_waits_for_it() {
    let mut pair = Pair::new(&Setup::default(), |_, config| config.limits.buffer_bytes = 8 << 10);
    let listener = listen(&mut pair);
    let [(one, _), (two, _), (three, _)] = [(); 3].map(|()| established(&mut pair, listener));
    while pair.stack(Side::Left).poll_event().is_some() {}
    let now = pair.now;
    let stack = pair.stack(Side::Left);
    assert_eq!(stack.tcp_write_with(now, one, 4_000, |room| room.len()), Ok(4_000));
    assert_eq!(stack.tcp_write_with(now, two, 4_000, |_| 0), Ok(0));
    assert_eq!(stack.tcp_write_with(now, two, 4_000, |room| room.len()), Ok(4_000));
    assert_eq!(stack.counters().tcp_extra.memory_waits, 0);
    assert_eq!(
        stack.tcp_write_with(now, three, 4_000, |_| unreachable!("there is no memory")),
        Ok(0)
    );
    assert_eq!(stack.counters().tcp_extra.memory_waits, 1);
    stack.check();
    let is_told = |pair: &mut Pair| {
        pair.stack(Side::Left).poll_event() == Some(Event::Tcp(three, TcpEvent::Writable))
    };
    assert!(pair.run_until(Duration::from_secs(3), is_told));
    let now = pair.now;
    assert!(pair.stack(Side::Left).tcp_write_with(now, three, 100, |room| room.len()).unwrap() > 0);
}
