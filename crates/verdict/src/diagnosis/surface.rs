//! The limit of one cell of a sweep, determined by the rules of a diagnosis. A sweep makes no
//! interventions. In their place, other cells show the effects of other buffer sizes.

use super::effect::{Effect, Outcome};
use super::figure::Figure;
use super::limit::Limit;
use super::rules::{Proof, RULES, Rule};
use super::session::{MIN_CONFIDENCE, MIN_LEAD, count_f64};
use linerate_evidence::RunEvidence;

/// Returns the limit of a cell; `None` if the rules do not identify a limit. `plain` contains the
/// counters of the cell. `effects` are the effects of larger and smaller buffers on its rate, as
/// other cells show them.
pub(crate) fn limit(plain: &RunEvidence, effects: &[Effect]) -> Option<Limit> {
    let mut found: Vec<(Limit, f64)> = RULES
        .iter()
        .filter_map(|rule| Some((rule.limit, confidence(rule, plain, effects)?)))
        .collect();
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let &(named, confidence) = found.first()?;
    let rival = found.iter().find(|(limit, _)| *limit != named).map_or(0.0, |&(_, rival)| rival);
    (confidence >= MIN_CONFIDENCE && confidence - rival >= MIN_LEAD).then_some(named)
}

/// Returns the confidence in the limit of `rule`, between 0 and 1. Returns `None` in these cases:
///
/// - An effect refutes the limit.
/// - The effects do not confirm the expectations that the rule requires as proof.
/// - The counters of the cell do not fit the rule, or a figure of the rule is absent.
fn confidence(rule: &Rule, plain: &RunEvidence, effects: &[Effect]) -> Option<f64> {
    let score = score(rule, plain)?;
    let outcomes = rule.expectations.iter().map(|group| {
        group.iter().find_map(|expectation| {
            let effect = effects.iter().find(|effect| effect.change == expectation.change())?;
            Some(expectation.compare(effect))
        })
    });
    let outcomes: Vec<Option<Outcome>> = outcomes.collect();
    let is_confirmed = |outcome: &Option<Outcome>| *outcome == Some(Outcome::Confirmed);
    let is_proved = match rule.proof {
        Proof::Counters => true,
        Proof::First => outcomes.first().is_some_and(is_confirmed),
        Proof::All => outcomes.iter().all(is_confirmed),
    };
    // A sweep changes only buffers, so the effects of all other interventions are unknown. A rule
    // about a buffer ignores expectations of unknown effects. In any other rule, they count as
    // unclear, which reduces the confidence.
    let outcomes: Vec<Outcome> = if is_of_buffer(rule) {
        outcomes.into_iter().flatten().collect()
    } else {
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::Unclear)).collect()
    };
    let count = |wanted| outcomes.iter().filter(|&&outcome| outcome == wanted).count();
    let (confirmed, refuted) = (count(Outcome::Confirmed), count(Outcome::Refuted));
    if refuted > 0 || !is_proved || score <= 0.0 {
        return None;
    }
    let unclear = count_f64(outcomes.len() - confirmed) / count_f64(outcomes.len().max(1));
    Some(score * (1.0 - 0.5 * unclear))
}

const fn is_of_buffer(rule: &Rule) -> bool {
    matches!(rule.limit, Limit::SendBuffer | Limit::ReceiveBuffer)
}

/// Returns the score of a cell, between 0 and 1: how well its counters meet the conditions of
/// `rule`. Returns `None` if a figure is absent.
///
/// For rules about buffers, conditions about busy processors and conditions with absent figures are
/// ignored, for two reasons. The measured effect of another buffer size is stronger evidence than a
/// counter. A processor that is busy with polling or with small windows does not exclude a buffer
/// as the limit.
fn score(rule: &Rule, plain: &RunEvidence) -> Option<f64> {
    if !is_of_buffer(rule) {
        return rule.score(plain);
    }
    let is_processor = |figure| matches!(figure, Figure::SenderCpu | Figure::ReceiverCpu);
    let conditions = rule.conditions.iter().filter(|condition| !is_processor(condition.figure));
    let known =
        conditions.filter_map(|condition| Some(condition.bound.score(condition.figure.of(plain)?)));
    Some(known.fold(1.0, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_evidence::{Change, ConnectionEvidence, EndEvidence, SenderStates};

    fn effect(change: Change, ratio: f64) -> Effect {
        let (low, high) = (ratio * 0.98, ratio * 1.02);
        Effect { change, ratio, low, high, losses: None, queue_ratio: None }
    }

    #[test]
    fn the_buffer_whose_size_the_rate_follows_is_the_limit() {
        let plain = RunEvidence::default();
        let responses = |send, receive| {
            [effect(Change::SendBufferLarger, send), effect(Change::ReceiveBufferLarger, receive)]
        };
        assert_eq!(limit(&plain, &responses(1.9, 1.0)), Some(Limit::SendBuffer));
        assert_eq!(limit(&plain, &responses(1.0, 1.9)), Some(Limit::ReceiveBuffer));
        assert_eq!(limit(&plain, &responses(1.0, 1.0)), None);
        assert_eq!(limit(&plain, &responses(1.5, 1.5)), None, "both respond");
        assert_eq!(limit(&plain, &[]), None);
    }

    #[test]
    fn a_full_peer_window_rules_out_the_send_buffer() {
        let states = Some(SenderStates { window_full: 0.9, ..SenderStates::default() });
        let connection =
            ConnectionEvidence { retransmitted_segments: Some(0), ..ConnectionEvidence::default() };
        let sender = EndEvidence { states, connection, ..EndEvidence::default() };
        let plain = RunEvidence { sender, ..RunEvidence::default() };
        assert_eq!(limit(&plain, &[effect(Change::SendBufferLarger, 1.9)]), None);
    }

    #[test]
    fn a_full_link_is_proved_by_its_counters() {
        let plain = RunEvidence {
            wire_bits_per_second: Some(0.97e9),
            link_bits_per_second: Some(1e9),
            ..RunEvidence::default()
        };
        assert_eq!(limit(&plain, &[]), Some(Limit::LinkRate));
    }
}
