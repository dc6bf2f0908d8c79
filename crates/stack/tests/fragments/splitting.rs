//! Property test of reassembly: a datagram is split anywhere, and its fragments arrive in any
//! order, with losses and repetitions. The host must deliver the undamaged datagram or nothing.

use crate::{Part, VERSIONS, bind, data, datagram, deliver, pair, receive};
use linerate_testkit::Side;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_fragments_deliver_the_datagram_or_nothing(
        is_ipv6 in any::<bool>(),
        length in 1_usize..2_000,
        cuts in prop::collection::btree_set(1_usize..250, 0..12),
        order in prop::collection::vec((0_usize..16, 0_u8..20), 0..40),
    ) {
        let hosts = VERSIONS[usize::from(is_ipv6)];
        let whole = datagram(hosts, &data(length));
        let mut bounds = vec![0];
        bounds.extend(cuts.iter().map(|cut| cut * 8).filter(|&cut| cut < whole.len()));
        bounds.push(whole.len());
        let parts: Vec<_> = bounds.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut pair = pair();
        let left = bind(&mut pair, Side::Left, hosts[0], 9);
        let mut seen = vec![false; parts.len()];
        let mut is_damaged = false;
        let mut deliveries = 0;
        // After the random sequence, each fragment arrives once more without a fault. The datagram
        // is therefore complete at the end.
        let rest = (0..parts.len()).map(|index| (index, 19));
        for (index, fault) in order.into_iter().chain(rest) {
            let index = index % parts.len();
            let (start, mut end) = parts[index];
            let more = end < whole.len();
            match fault {
                // The fragment is made eight bytes longer, so that it overlaps the next fragment.
                0 if more && parts.len() > 1 => {
                    end = (end + 8).min(whole.len() & !7).max(end);
                    is_damaged = true;
                }
                1 => continue,
                _ => {}
            }
            let offset = u16::try_from(start).unwrap();
            deliver(&mut pair, hosts, Part::udp(offset, &whole[start..end], more));
            seen[index] = true;
            while let Ok(received) = receive(&mut pair, Side::Left, left) {
                prop_assert_eq!(received, data(length));
                // When the datagram is delivered, all its fragments must have arrived. This does
                // not hold if a fragment was made longer: it may contain the whole next fragment,
                // which need not arrive then.
                prop_assert!(is_damaged || seen.iter().all(|&is_seen| is_seen));
                deliveries += 1;
                seen.fill(false);
            }
        }
        prop_assert!(is_damaged || deliveries > 0);
    }
}
