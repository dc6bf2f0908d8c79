use super::*;

#[test]
fn holders_are_classified_by_size_and_rotate() {
    let mut memory = Memory::new(1_000_000);
    memory.update(0, 0, 4_096);
    memory.update(1, 0, 8_192);
    memory.update(2, 0, 8_192);
    assert_eq!(memory.held(), 20_480);
    let class = class_of(8_192);
    assert_eq!(
        [memory.next_holder(class), memory.next_holder(class), memory.next_holder(class)],
        [Some(1), Some(2), Some(1)]
    );
    memory.update(1, 8_192, 4_096);
    assert_eq!([memory.next_holder(class), memory.next_holder(class)], [Some(2), Some(2)]);
    memory.forget(2, 8_192);
    memory.check([4_096, 4_096].into_iter());
}

#[test]
fn newcomers_are_limited_and_hold_no_memory() {
    let mut memory = Memory::new(1_000_000);
    let limit = u32::try_from(NEWCOMERS).unwrap();
    assert!((0..limit).all(|connection| memory.handle_newcomer(connection).is_none()));
    assert_eq!((memory.handle_newcomer(3), memory.handle_newcomer(limit)), (None, Some(0)));
    memory.update(1, 0, 4_096);
    memory.update(1, 4_096, 0);
    memory.forget(2, 0);
    assert!(
        [limit + 1, limit + 2]
            .iter()
            .all(|&connection| memory.handle_newcomer(connection).is_none())
    );
    assert_eq!(memory.handle_newcomer(limit + 3), Some(3));
    memory.check_newcomers(|_| Some(0));
}

#[test]
fn a_large_holder_leaves_sixteen_times_as_much_free() {
    let mut memory = Memory::new(1_700_000);
    let least = in_grant(SMALLEST_BUFFER_MEMORY);
    let grant = |memory: &Memory, held, moved| memory.grant(held, has_moved(held, moved));
    let everything = MemoryGrant { room: 100_000, least, tuning: true, is_awaited: false };
    assert_eq!(grant(&memory, 0, 0), everything);
    memory.update(0, 0, 100_000);
    assert_eq!((grant(&memory, 100_000, 0).room, grant(&memory, 100_000, 0).least), (0, least));
    assert_eq!(grant(&memory, 0, 0).room, 94_117);
    assert_eq!(grant(&memory, 10_000, 0).room, 84_705);
    assert_eq!(grant(&memory, 100_000, 100_000).room, 750_000, "it has transferred what it holds");
    memory.update(0, 100_000, 1_275_000);
    assert!(grant(&memory, 0, 0).tuning);
    memory.update(0, 1_275_000, 1_275_001);
    assert!(!grant(&memory, 0, 0).tuning);
}

#[test]
fn the_last_bytes_are_reserved_for_writers() {
    let mut memory = Memory::new(0);
    memory.update(0, 0, 4_096);
    assert_eq!(memory.grant(0, false).least, 4_096);
    memory.update(1, 0, 2_048);
    assert_eq!(memory.grant(0, false).least, 0, "waiting writers come first");
}
