//! Proportional rate reduction (PRR, RFC 6937). During recovery, the congestion window is reduced
//! to SSTHRESH in proportion to the delivered data. RFC 6937 has two bounds for the data sent, the
//! slow-start bound and the conservative bound. As in its successor,
//! draft-ietf-tcpm-prr-rfc6937bis, one of the two is chosen for each acknowledgement. Amounts are
//! in bytes.

use crate::compact::pack::packed;

/// The state of PRR in one recovery, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Prr {
    /// RecoverFS: the number of bytes in flight when recovery began.
    flight: u32,
    /// prr_delivered: the number of bytes delivered to the peer since recovery began.
    delivered: u64,
    /// prr_out: the number of bytes sent since recovery began.
    sent: u64,
    /// The number of bytes that acknowledgements have permitted while at most SSTHRESH bytes were
    /// in flight, less the bytes sent since. If several acknowledgements are processed before the
    /// next output, their permissions add up.
    credit: u64,
}

packed!(Prr { flight, delivered, sent, credit });

impl Prr {
    /// Begins a recovery. `flight` bytes were in flight before the acknowledgement that began it.
    pub(crate) fn begin(flight: u32) -> Self {
        Self { flight: flight.max(1), delivered: 0, sent: 0, credit: 0 }
    }

    /// Counts `bytes` bytes that were sent, new or retransmitted.
    pub(crate) fn note_sent(&mut self, bytes: u32) {
        self.sent += u64::from(bytes);
        self.credit = self.credit.saturating_sub(u64::from(bytes));
    }

    /// Returns the congestion window after an acknowledgement that has delivered `delivered` bytes
    /// and left `pipe` bytes in flight. `safe` is true if the acknowledgement advanced SND.UNA and
    /// reported no further loss. If so, and if less than SSTHRESH is in flight, slow start enlarges
    /// the data in flight up to SSTHRESH. If `safe` is false and less than SSTHRESH is in flight,
    /// this amount is only kept constant.
    pub(crate) fn window(
        &mut self,
        delivered: u32,
        pipe: u32,
        ssthresh: u32,
        mss: u32,
        safe: bool,
    ) -> u32 {
        self.delivered += u64::from(delivered);
        let mut allowance = if pipe > ssthresh {
            self.credit = 0;
            let due = (self.delivered * u64::from(ssthresh)).div_ceil(u64::from(self.flight));
            due.saturating_sub(self.sent)
        } else {
            self.credit += u64::from(delivered) + if safe { u64::from(mss) } else { 0 };
            let due = self.delivered.saturating_sub(self.sent).max(self.credit);
            due.min(u64::from(ssthresh - pipe))
        };
        if self.sent == 0 {
            // Nothing was sent in this recovery yet. One segment is always permitted then: the fast
            // retransmission.
            allowance = allowance.max(u64::from(mss));
        }
        pipe.saturating_add(u32::try_from(allowance).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_000;

    /// RFC 6937 §3: one of 20 segments is lost, and the window is halved. Every second
    /// acknowledgement permits one segment. The acknowledgements of the other 19 segments thus
    /// permit ten segments in total.
    #[test]
    fn half_the_window_is_sent_while_a_window_is_delivered() {
        let mut prr = Prr::begin(20 * MSS);
        let (ssthresh, mut pipe, mut sent) = (10 * MSS, 19 * MSS, 0);
        for _ in 0..19 {
            pipe -= MSS;
            let window = prr.window(MSS, pipe, ssthresh, MSS, false);
            if window >= pipe + MSS {
                prr.note_sent(MSS);
                pipe += MSS;
                sent += 1;
            }
        }
        assert_eq!((sent, pipe), (10, ssthresh));
    }

    /// Many losses leave less than SSTHRESH in flight. While acknowledgements advance SND.UNA and
    /// reveal no further loss, slow start then permits two segments for each delivered segment, up
    /// to SSTHRESH. Otherwise one segment is permitted.
    #[test]
    fn slow_start_refills_an_emptied_pipe_when_safe() {
        let mut prr = Prr::begin(20 * MSS);
        prr.note_sent(MSS);
        assert_eq!(prr.window(MSS, 2 * MSS, 10 * MSS, MSS, true), 2 * MSS + 2 * MSS);
        let mut prr = Prr::begin(20 * MSS);
        prr.note_sent(MSS);
        assert_eq!(prr.window(MSS, 2 * MSS, 10 * MSS, MSS, false), 2 * MSS + MSS);
    }

    /// A host may process several acknowledgements before it sends. Together they permit as much
    /// data as they would if the host sent after each of them.
    #[test]
    fn a_batch_of_acknowledgements_admits_as_much_as_single_ones() {
        let mut one_by_one = Prr::begin(20 * MSS);
        let mut together = one_by_one.clone();
        let (mut sent, mut pipe) = (0, 4 * MSS);
        for _ in 0..3 {
            pipe -= MSS;
            let window = one_by_one.window(MSS, pipe, 10 * MSS, MSS, true);
            sent += window - pipe;
            one_by_one.note_sent(window - pipe);
            pipe = window;
        }
        let windows = [3, 2, 1].map(|pipe| together.window(MSS, pipe * MSS, 10 * MSS, MSS, true));
        assert_eq!(windows[2] - MSS, sent);
    }

    /// RFC 6937 §3: while more than SSTHRESH is in flight, less is sent than is delivered. The
    /// difference is not lost: it may be sent once further losses have reduced the data in flight
    /// below SSTHRESH.
    #[test]
    fn unsent_deliveries_above_the_threshold_are_made_up_for_below_it() {
        let mut prr = Prr::begin(20 * MSS);
        prr.note_sent(MSS);
        assert_eq!(prr.window(4 * MSS, 12 * MSS, 10 * MSS, MSS, false), 12 * MSS + MSS);
        assert_eq!(prr.window(MSS, 4 * MSS, 10 * MSS, MSS, false), 4 * MSS + 4 * MSS);
    }

    /// RFC 6937 §3: the number of bytes that an acknowledgement permits is rounded up. Below
    /// SSTHRESH, it never lets the data in flight exceed SSTHRESH.
    #[test]
    fn the_proportion_is_rounded_up_and_limited_by_the_threshold() {
        let mut prr = Prr::begin(3 * MSS);
        prr.note_sent(1);
        assert_eq!(prr.window(1, 3 * MSS, 2 * MSS, MSS, false), 3 * MSS);
        assert_eq!(prr.window(1, 3 * MSS, 2 * MSS, MSS, false), 3 * MSS + 1);
        assert_eq!(prr.window(9 * MSS, 2 * MSS - 5, 2 * MSS, MSS, true), 2 * MSS);
    }

    #[test]
    fn the_first_retransmission_is_always_sent() {
        let mut prr = Prr::begin(20 * MSS);
        assert_eq!(prr.window(0, 19 * MSS, 10 * MSS, MSS, false), 19 * MSS + MSS);
    }
}
