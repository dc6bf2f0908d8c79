//! The course of a diagnosis: which run comes next, and what follows from all runs so far.

use super::contention::{CONTENDED_SHARE, contention};
use super::effect::{Effect, Expectation, Losses, Outcome};
use super::figure::Figure;
use super::limit::Limit;
use super::rules::{Proof, RULES, Rule};
use super::verdict::{EvidenceLine, InterventionLine, Verdict};
use linerate_evidence::stats::as_f64;
use linerate_evidence::{Change, RunEvidence};

/// Maximum number of attempts to get an uncontended first run.
const FIRST_ATTEMPTS: usize = 3;
/// Maximum number of contended runs in a diagnosis.
const MAX_CONTENDED: usize = 5;
/// Maximum number of transfers with a change.
const MAX_CHANGES: usize = 8;
/// Maximum number of transfers with one change.
const MAX_REPEATS: usize = 3;
/// Minimum score of a rule whose interventions are tried.
const MIN_TRIED_SCORE: f64 = 0.05;
/// Minimum confidence in a limit that is named.
const MIN_CONFIDENCE: f64 = 0.3;
/// Minimum lead over the next limit.
const MIN_LEAD: f64 = 0.2;
/// Minimum half-width of an interval relative to the effect, because of clocks and scheduling.
const MIN_WIDTH: f64 = 0.03;
/// Maximum of an effect, which is also that of a change without which nothing was carried.
const MAX_RATIO: f64 = 1_000.0;
/// Half-width of an interval in standard deviations of a difference between two runs.
const WIDTH: f64 = 2.0;

/// The run that a diagnosis needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// The first plain transfer, which is longer than the others.
    First,
    /// Another plain transfer, to compare changes with.
    Plain,
    /// A transfer with a change.
    Changed(Change),
}

/// The runs of a diagnosis so far.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The first plain transfer. It is longer than the others, so it is not compared with them:
    /// slow start takes a larger part of a shorter transfer.
    first: Option<RunEvidence>,
    /// Further uncontended plain transfers, with their place among the runs.
    plain: Vec<(usize, RunEvidence)>,
    /// Transfers with a change, with their place.
    changed: Vec<(usize, Change, RunEvidence)>,
    /// Changes of unknown effect: the path cannot make them, or two attempts were contended.
    given_up: Vec<Change>,
    /// Changes that the path cannot make.
    impossible: Vec<Change>,
    contended: Vec<RunEvidence>,
    /// Was the previous run contended?
    is_repeat: bool,
    runs: usize,
    is_out_of_time: bool,
}

/// A rule with its score and the results of its expectations.
struct Judged {
    rule: &'static Rule,
    score: f64,
    confirmed: usize,
    is_first_confirmed: bool,
    refuted: usize,
    expected: usize,
}

impl Diagnosis {
    /// Creates a diagnosis without runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the run that is needed next; `None` if the verdict is ready.
    #[must_use]
    pub fn next_run(&self) -> Option<NextRun> {
        if self.is_out_of_time || self.contended.len() >= MAX_CONTENDED {
            return None;
        }
        if self.first.is_none() {
            return (self.contended.len() < FIRST_ATTEMPTS).then_some(NextRun::First);
        }
        let last_plain = self.plain.last().map(|(place, _)| *place);
        let last_changed = self.changed.last().map(|(place, ..)| *place);
        let change = self.wanted();
        // Each change needs a plain transfer before and after it.
        let is_plain_due = match last_changed {
            Some(place) => last_plain < Some(place),
            None => last_plain.is_none() && change.is_some(),
        };
        if is_plain_due {
            return Some(NextRun::Plain);
        }
        change.map(NextRun::Changed)
    }

    /// Takes the evidence of the run `asked`; `None` if the path cannot make its change.
    pub fn add(&mut self, asked: NextRun, evidence: Option<RunEvidence>) {
        let Some(evidence) = evidence else {
            if let NextRun::Changed(change) = asked {
                self.given_up.push(change);
                self.impossible.push(change);
            }
            return;
        };
        self.runs += 1;
        if contention(&evidence).is_some() {
            self.contended.push(evidence);
            match asked {
                NextRun::Changed(change) if self.is_repeat => self.given_up.push(change),
                _ => {}
            }
            self.is_repeat = !self.is_repeat;
            return;
        }
        self.is_repeat = false;
        match asked {
            NextRun::First => self.first = Some(evidence),
            NextRun::Plain => self.plain.push((self.runs, evidence)),
            NextRun::Changed(change) => self.changed.push((self.runs, change, evidence)),
        }
    }

    /// Returns whether losses are to be compared, for which transfers must not be short.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        let lost = |run: &RunEvidence| Figure::Losses.of(run);
        self.first.as_ref().and_then(lost).is_some_and(|lost| lost > 0.0)
    }

    /// Ends the diagnosis: no further run is possible within the budget.
    pub const fn end(&mut self) {
        self.is_out_of_time = true;
    }

    /// Returns the next change to try: those of the best rules come first. If all have been tried
    /// and no limit is named, returns one whose effect is unclear.
    fn wanted(&self) -> Option<Change> {
        if self.changed.len() >= MAX_CHANGES {
            return None;
        }
        let mut judged = self.judged();
        judged.sort_by(|one, other| other.score.total_cmp(&one.score));
        let tried =
            |change: Change| self.changed.iter().filter(|(_, one, _)| *one == change).count();
        let effects = self.effects();
        let find = |is_wanted: &dyn Fn(Expectation) -> bool| {
            judged.iter().filter(|judged| judged.refuted == 0).find_map(|judged| {
                judged.rule.expectations.iter().find_map(|group| {
                    let possible = group.iter().find(|one| !self.given_up.contains(&one.change()));
                    possible.copied().filter(|&one| is_wanted(one)).map(Expectation::change)
                })
            })
        };
        let is_unclear = |one: Expectation| {
            let effect = effects.iter().find(|effect| effect.change == one.change());
            effect.is_none_or(|effect| one.compare(effect) == Outcome::Unclear)
        };
        find(&|one| tried(one.change()) == 0).or_else(|| {
            (self.verdict().limit == Limit::NotIdentified)
                .then(|| find(&|one| tried(one.change()) < MAX_REPEATS && is_unclear(one)))?
        })
    }

    /// Returns the rules that fit, with the results of their expectations.
    fn judged(&self) -> Vec<Judged> {
        let Some(plain) = &self.first else { return Vec::new() };
        let effects = self.effects();
        let fits = RULES.iter().filter_map(|rule| {
            let score = rule.score(plain)?;
            (score >= MIN_TRIED_SCORE).then(|| self.judge(rule, score, &effects))
        });
        fits.collect()
    }

    fn judge(&self, rule: &'static Rule, score: f64, effects: &[Effect]) -> Judged {
        let outcomes = rule.expectations.iter().map(|group| {
            let possible = group.iter().find(|one| !self.given_up.contains(&one.change()));
            let effect = possible.and_then(|expectation| {
                let change = expectation.change();
                Some((expectation, effects.iter().find(|effect| effect.change == change)?))
            });
            effect.map_or(Outcome::Unclear, |(expectation, effect)| expectation.compare(effect))
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let count = |wanted| outcomes.iter().filter(|&&outcome| outcome == wanted).count();
        let (confirmed, refuted) = (count(Outcome::Confirmed), count(Outcome::Refuted));
        let is_first_confirmed = outcomes.first() == Some(&Outcome::Confirmed);
        // Counters prove a limit also where no intervention is possible.
        let is_possible =
            |group: &[Expectation]| group.iter().any(|one| !self.given_up.contains(&one.change()));
        let expected = match rule.proof {
            Proof::Counters => rule.expectations.iter().filter(|group| is_possible(group)).count(),
            Proof::First | Proof::All => outcomes.len(),
        };
        Judged { rule, score, confirmed, is_first_confirmed, refuted, expected }
    }

    /// Returns the effects of all changes, against the plain transfers around them.
    fn effects(&self) -> Vec<Effect> {
        let width = self.width();
        let effect = |(place, change, run): &(usize, Change, RunEvidence)| {
            let before = self.plain.iter().rev().find(|(plain, _)| plain < place);
            let after = self.plain.iter().find(|(plain, _)| plain > place);
            let around = [before, after];
            let around: Vec<&RunEvidence> =
                around.into_iter().flatten().map(|(_, run)| run).collect();
            let plain = mean(around.iter().map(|run| run.bytes_per_second))?;
            let ratio = (run.bytes_per_second / plain).min(MAX_RATIO);
            if plain <= 0.0 {
                // The transfer without the change carried no data.
                let ratio = if run.bytes_per_second > 0.0 { MAX_RATIO } else { 1.0 };
                return Some(Effect {
                    change: *change,
                    ratio,
                    low: ratio,
                    high: ratio,
                    losses: None,
                    queue_ratio: None,
                });
            }
            let (low, high) = (ratio / (1.0 + width), ratio * (1.0 + width));
            Some(Effect {
                change: *change,
                ratio,
                low,
                high,
                losses: self.losses(run),
                queue_ratio: self.queue_ratio(run, &around),
            })
        };
        let mut effects: Vec<Vec<Effect>> = Vec::new();
        for one in self.changed.iter().filter_map(effect) {
            match effects.iter_mut().find(|same| same[0].change == one.change) {
                Some(same) => same.push(one),
                None => effects.push(vec![one]),
            }
        }
        effects.iter().map(|same| Effect::mean(same)).collect()
    }

    /// Returns all plain transfers.
    fn all_plain(&self) -> impl Iterator<Item = &RunEvidence> {
        self.first.iter().chain(self.plain.iter().map(|(_, run)| run))
    }

    /// Compares the losses of `run` with those of all plain transfers together. A transfer counts
    /// from its beginning: a short one has few losses.
    fn losses(&self, run: &RunEvidence) -> Option<Losses> {
        let of = |run: &RunEvidence| {
            let connection = &run.sender.connection;
            let lost = connection.loss_events.or(connection.whole_retransmitted_segments)?;
            Some((as_f64(lost), as_f64(connection.whole_data_segments?)))
        };
        let (count, sent) = of(run)?;
        let plain = self.all_plain().filter_map(of);
        let (lost, all) =
            plain.fold((0.0, 0.0), |(lost, all), (one, sent)| (lost + one, all + sent));
        (lost > 0.0 && sent > 0.0 && all > 0.0)
            .then(|| Losses { count, expected: lost / all * sent })
    }

    /// Compares the queueing delay of `run` with that of the plain transfers `around` it. Without a
    /// queue, a round trip takes as long as the shortest one of all transfers.
    fn queue_ratio(&self, run: &RunEvidence, around: &[&RunEvidence]) -> Option<f64> {
        let all = self.all_plain().chain(self.changed.iter().map(|(.., run)| run));
        let shortest = all
            .filter_map(|run| run.sender.connection.shortest_round_trip_micros)
            .min()
            .map(as_f64)?;
        let delay =
            |run: &RunEvidence| Some(run.sender.connection.round_trip_micros?.mean - shortest);
        let plain = mean(around.iter().filter_map(|run| delay(run)))?;
        (plain > 0.0).then_some((delay(run)? / plain).max(0.0))
    }

    /// Returns the relative half-width of an interval, from the spread of the plain transfers.
    fn width(&self) -> f64 {
        let logs = || self.plain.iter().map(|(_, run)| run.bytes_per_second.max(1.0).ln());
        let Some(centre) = mean(logs()) else { return MIN_WIDTH };
        let squares = logs().map(|log| (log - centre).powi(2)).sum::<f64>();
        let degrees = count_f64(self.plain.len().saturating_sub(1).max(1));
        // The variance of the difference between a run and the mean of the two plain runs around
        // it: 1 + 1/2 times that of a run.
        let deviation = (squares / degrees * 1.5).sqrt();
        (WIDTH * deviation).max(MIN_WIDTH)
    }

    /// Returns the verdict on all runs so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Some(plain) = &self.first else { return self.contended_verdict() };
        let judged = self.judged();
        let mut best: Vec<(&Judged, f64)> =
            judged.iter().filter_map(|judged| Some((judged, judged.confidence()?))).collect();
        best.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let Some(&(named, confidence)) = best.first() else {
            return self.not_identified(plain);
        };
        // Two rules for one limit are not rivals.
        let rival = best.iter().find(|(other, _)| other.rule.limit != named.rule.limit);
        let rival = rival.map_or(0.0, |(_, confidence)| *confidence);
        let lead = confidence - rival;
        let confidence = confidence * (1.0 - rival);
        if confidence < MIN_CONFIDENCE || lead < MIN_LEAD {
            return self.not_identified(plain);
        }
        let evidence = named.rule.conditions.iter().filter_map(|condition| {
            Some(EvidenceLine {
                counter: condition.figure.name(),
                end: condition.figure.end(),
                value: condition.figure.of(plain)?,
                threshold: Some(condition.bound.text()),
                reason: Some(condition.source),
            })
        });
        Verdict {
            limit: named.rule.limit,
            confidence,
            bytes_per_second: plain.bytes_per_second,
            evidence: evidence.collect(),
            interventions: self.interventions(),
            skipped: self.impossible.clone(),
            advice: named.rule.limit.advice(),
        }
    }

    fn not_identified(&self, plain: &RunEvidence) -> Verdict {
        let evidence = Figure::ALL.into_iter().filter_map(|figure| {
            let value = figure.of(plain)?;
            let (counter, end) = (figure.name(), figure.end());
            Some(EvidenceLine { counter, end, value, threshold: None, reason: None })
        });
        Verdict {
            limit: Limit::NotIdentified,
            confidence: 0.0,
            bytes_per_second: plain.bytes_per_second,
            evidence: evidence.collect(),
            interventions: self.interventions(),
            skipped: self.impossible.clone(),
            advice: Limit::NotIdentified.advice(),
        }
    }

    fn contended_verdict(&self) -> Verdict {
        let least = self.contended.iter().min_by(|one, other| {
            let share = |run| contention(run).map_or(0.0, |(_, _, share)| share);
            share(one).total_cmp(&share(other))
        });
        let evidence = least.and_then(contention).map(|(end, counter, value)| EvidenceLine {
            counter,
            end,
            value,
            threshold: Some(format!("at most {CONTENDED_SHARE}")),
            reason: Some("threads that wait for a CPU measure the machine and not the path"),
        });
        Verdict {
            limit: if least.is_some() { Limit::Contended } else { Limit::NotIdentified },
            confidence: if least.is_some() { 1.0 } else { 0.0 },
            bytes_per_second: least.map_or(0.0, |run| run.bytes_per_second),
            evidence: evidence.into_iter().collect(),
            interventions: Vec::new(),
            skipped: self.impossible.clone(),
            advice: Limit::Contended.advice(),
        }
    }

    fn interventions(&self) -> Vec<InterventionLine> {
        let line = |effect: Effect| InterventionLine {
            change: effect.change,
            effect: effect.ratio,
            interval: [effect.low, effect.high],
            loss_effect: effect.losses.map(Losses::ratio),
            queue_effect: effect.queue_ratio,
        };
        self.effects().into_iter().map(line).collect()
    }
}

impl Judged {
    /// Returns the confidence in the limit of this rule; `None` if it is refuted or unproved.
    fn confidence(&self) -> Option<f64> {
        let is_proved = match self.rule.proof {
            Proof::Counters => true,
            Proof::First => self.is_first_confirmed,
            Proof::All => self.confirmed == self.expected,
        };
        if self.refuted > 0 || !is_proved {
            return None;
        }
        // Expectations that stay unclear reduce the confidence by up to one half, in proportion to
        // their number.
        let unclear = count_f64(self.expected - self.confirmed) / count_f64(self.expected.max(1));
        Some(self.score * (1.0 - 0.5 * unclear))
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count();
    (count > 0).then(|| values.sum::<f64>() / count_f64(count))
}

#[allow(clippy::cast_precision_loss, reason = "a small number of runs")]
const fn count_f64(count: usize) -> f64 {
    count as f64
}
