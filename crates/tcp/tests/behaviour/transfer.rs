//! Whole transfers, each of which survives the loss of any one segment: the 1st is lost, then the
//! 2nd, the 3rd … until a transfer comes through untouched.

use crate::{ms, secs};
use linerate_tcp::{Config, Error, Profile, State};
use linerate_testkit::{Connections, End, Fate, Network, pattern};
use linerate_units::Duration;
use std::cell::Cell;
use std::rc::Rc;

const BYTES: usize = 30_000;

/// One application: writes the pattern, closes its direction, reads until the end.
#[derive(Default)]
struct Application {
    written: usize,
    read: usize,
    heard_end: bool,
}

impl Application {
    fn turn(&mut self, pair: &mut Connections, side: End) {
        if side == End::Server && pair.server.is_none() {
            return;
        }
        let now = pair.now;
        let end = pair.end(side);
        let mut part = [0; 4_096];
        while !self.heard_end {
            match end.read(now, &mut part) {
                Ok(0) => self.heard_end = true,
                Ok(count) => {
                    let expected = (self.read..self.read + count).map(pattern);
                    assert!(part[..count].iter().copied().eq(expected), "wrong bytes after {}", self.read);
                    self.read += count;
                }
                Err(error) => {
                    assert_eq!(error, Error::WouldBlock);
                    break;
                }
            }
        }
        if self.written < BYTES {
            let part: Vec<u8> = (self.written..BYTES).map(pattern).collect();
            self.written += end.write(now, &part).expect("the direction is open");
        }
        if self.written == BYTES {
            end.shutdown_write(now);
        }
    }
}

/// How long `BYTES` take in both directions at once, and whether a segment was lost on the way.
fn transfer_without(config: &Config, from: End, nth: u32) -> (Duration, bool) {
    let mut pair = Connections::new(config, config, Network::clean(ms(5)), u64::from(nth));
    let (seen, lost) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let losing = Rc::clone(&lost);
    pair.set_filter(move |_, side, _| {
        seen.set(seen.get() + u32::from(side == from));
        let hit = side == from && seen.get() == nth;
        losing.set(losing.get() || hit);
        hit.then_some(Fate::Lose)
    });
    let start = pair.now;
    let (mut client, mut server) = (Application::default(), Application::default());
    while !(client.heard_end && server.heard_end) {
        client.turn(&mut pair, End::Client);
        server.turn(&mut pair, End::Server);
        assert!(pair.step() || client.heard_end, "nothing happens any more, and bytes are missing");
    }
    let took = pair.now.since(start);
    assert_eq!((client.read, server.read), (BYTES, BYTES));
    pair.run_to_silence();
    for side in [End::Client, End::Server] {
        assert_eq!((pair.end(side).state(), pair.end(side).error()), (State::Closed, None), "{side:?}");
    }
    (took, lost.get())
}

/// No loss of one segment may cost more than `patience` beyond the transfer without loss.
fn survives_every_loss(profile: Profile, patience: impl Fn(u32) -> Duration) {
    let config = Config { send_buffer: 16 << 10, receive_buffer: 16 << 10, ..profile.config() };
    let (clean, _) = transfer_without(&config, End::Client, u32::MAX);
    for from in [End::Client, End::Server] {
        for nth in 1.. {
            let (took, lost) = transfer_without(&config, from, nth);
            let most = clean + patience(nth);
            assert!(took <= most, "{from:?}'s segment {nth} cost {} in {profile}", took - clean);
            if !lost {
                assert!(nth > 10, "only {nth} segments were sent");
                break;
            }
        }
    }
}

#[test]
fn a_modern_transfer_survives_the_loss_of_any_one_segment() {
    // A segment of the handshake: one second, and a slow start from one segment with a timeout of 3 s.
    survives_every_loss(Profile::Modern, |nth| if nth <= 2 { ms(1_100) } else { ms(300) });
}

#[test]
fn a_transfer_of_1988_survives_the_loss_of_any_one_segment() {
    survives_every_loss(Profile::BsdTahoe, |nth| if nth <= 2 { secs(7) } else { secs(3) });
}

#[test]
fn a_transfer_of_1990_survives_the_loss_of_any_one_segment() {
    survives_every_loss(Profile::BsdReno, |nth| if nth <= 2 { secs(7) } else { secs(3) });
}
