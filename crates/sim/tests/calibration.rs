//! Compares the simulator with the throughput table of 1988. Parameters were fitted only to eight
//! cells of the table, which the first test checks. The other tests check features to which nothing
//! was fitted, so these are predictions.

#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

use linerate_sim::{Keep, Scenario, TransferOptions};

/// Returns the throughput in KB/s between two hosts whose socket buffers hold this many packets. It
/// is the mean of four transfers of 8 MiB.
fn rate(scenario: &str, packets: u64) -> f64 {
    let blueprint = Scenario::named(scenario).unwrap().blueprint().unwrap();
    let buffer = Some(usize::try_from(packets).unwrap() * 1_460);
    let options = TransferOptions {
        send_buffer: buffer,
        receive_buffer: buffer,
        ..TransferOptions::default()
    };
    let one = |seed: u64| {
        let outcome = blueprint.run(packets * 1_000 + seed, &options, Keep::default());
        let (source, sink) = (
            outcome.program("transfer: source").unwrap(),
            outcome.program("transfer: sink").unwrap(),
        );
        8_192.0 / sink.ended.unwrap().since(source.began.unwrap()).as_secs_f64()
    };
    (0..4).map(one).sum::<f64>() / 4.0
}

#[test]
fn the_calibration_cells_are_met_within_five_per_cent() {
    let lance = [(1, 384.0), (2, 606.0), (4, 784.0), (8, 954.0), (12, 1_001.0)];
    let intel = [(1, 337.0), (2, 575.0), (8, 718.0)];
    let error = |scenario: &'static str| {
        move |&(packets, published): &(u64, f64)| {
            (packets, rate(scenario, packets) / published - 1.0)
        }
    };
    let errors: Vec<(u64, f64)> = lance
        .iter()
        .map(error("sun-3-60-to-3-60"))
        .chain(intel.iter().map(error("sun-3-280-to-3-60")))
        .collect();
    let mean = errors.iter().map(|(_, error)| error.abs()).sum::<f64>() / 8.0;
    assert!(
        mean <= 0.025 && errors.iter().all(|(_, error)| error.abs() <= 0.05),
        "{mean} {errors:?}"
    );
}

#[test]
fn the_82586_has_a_notch_at_three_packets_and_is_flat_from_four_on() {
    let [two, three, four, five, seventeen] =
        [2, 3, 4, 5, 17].map(|packets| rate("sun-3-280-to-3-60", packets));
    assert!(three < two * 1.05 && four > three * 1.15, "{two} {three} {four}");
    assert!(
        (five / four - 1.0).abs() < 0.03 && (seventeen / four - 1.0).abs() < 0.03,
        "{four} {five} {seventeen}"
    );
}

#[test]
fn the_lance_column_never_falls_by_more_than_one_per_cent() {
    let column = [1, 2, 4, 6, 8, 10, 12, 14, 17].map(|packets| rate("sun-3-60-to-3-60", packets));
    assert!(column.windows(2).all(|two| two[1] > two[0] * 0.99), "{column:?}");
}
