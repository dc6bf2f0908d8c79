//! The course of a diagnosis: the choice of the next run, and the verdict on all runs so far.

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
/// Number of contended runs at which the diagnosis ends.
const MAX_CONTENDED: usize = 5;
/// Number of runs that show the effect of an intervention, after which no further intervention is
/// tried.
const MAX_CHANGES: usize = 12;
/// Maximum number of runs that show the effect of one intervention.
const MAX_REPEATS: usize = 3;
/// Minimum score of a rule for its interventions to be tried.
const MIN_TRIED_SCORE: f64 = 0.05;
/// Minimum confidence for a limit to be named.
const MIN_CONFIDENCE: f64 = 0.3;
/// Minimum difference between the confidence in the named limit and the confidence in the second
/// most likely limit.
const MIN_LEAD: f64 = 0.2;
/// Minimum relative half-width of an effect's interval, because clocks and scheduling are inexact
/// even if runs hardly differ.
const MIN_WIDTH: f64 = 0.03;
/// Relative half-width of an effect's interval while at most one run without intervention has
/// followed the first run. A single run shows no spread.
const UNKNOWN_WIDTH: f64 = 0.25;
/// Maximum ratio of rates that is reported as an effect. It is also reported if data arrived only
/// with the intervention, so that the ratio is infinite.
const MAX_RATIO: f64 = 1_000.0;
/// Half-width of an interval, in standard deviations of the difference between two runs.
const WIDTH: f64 = 2.0;

/// The kind of the run that a diagnosis needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// The first run. It has no intervention, and is at least as long as all other runs.
    First,
    /// A further run without an intervention. The runs with an intervention before and after it are
    /// compared with it.
    Plain,
    /// A run with the given intervention.
    Changed(Change),
}

/// The state of a diagnosis: its runs so far.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The first run. The effects of interventions on the rate are not computed from it, because
    /// slow start is a smaller part of this longer transfer.
    first: Option<RunEvidence>,
    /// Further uncontended runs without intervention, each with its position among all runs.
    plain: Vec<(usize, RunEvidence)>,
    /// Runs with an intervention from which effects are computed: uncontended runs, and those
    /// contended runs that were faster than every run without an intervention.
    changed: Vec<ChangedRun>,
    /// Interventions that are not tried again, because they are impossible on this path, or because
    /// two successive attempts were contended.
    given_up: Vec<Change>,
    /// Interventions that are impossible on this path.
    impossible: Vec<Change>,
    /// All contended runs, with or without an intervention.
    contended: Vec<RunEvidence>,
    /// Is the next run the second attempt at the previous run, which was contended?
    is_repeat: bool,
    /// Number of all runs so far, including contended runs.
    runs: usize,
    is_out_of_time: bool,
}

/// A run with an intervention.
#[derive(Clone, Debug)]
struct ChangedRun {
    /// Position of this run among all runs of the diagnosis.
    place: usize,
    change: Change,
    evidence: RunEvidence,
    /// Was the run contended? Its rate is then only a lower bound of the rate that the path would
    /// allow with this intervention.
    is_contended: bool,
}

/// A rule, with its score and the results of its groups of expectations. The result of a group is
/// that of the first expectation in it whose intervention has not been given up.
struct Judged {
    rule: &'static Rule,
    score: f64,
    /// Number of confirmed groups of expectations.
    confirmed: usize,
    is_first_confirmed: bool,
    /// Number of refuted groups of expectations.
    refuted: usize,
    /// Number of groups of expectations that must be confirmed for full confidence.
    expected: usize,
}

impl Diagnosis {
    /// Creates a diagnosis that has no runs yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the kind of the run to make next; `None` if the verdict is ready.
    #[must_use]
    pub fn next_run(&self) -> Option<NextRun> {
        if self.is_out_of_time || self.contended.len() >= MAX_CONTENDED {
            return None;
        }
        if self.first.is_none() {
            return (self.contended.len() < FIRST_ATTEMPTS).then_some(NextRun::First);
        }
        let last_plain = self.plain.last().map(|(place, _)| *place);
        let last_changed = self.changed.last().map(|run| run.place);
        let change = self.wanted();
        // The effect of an intervention is relative to two runs without an intervention, one before
        // and one after it. A run without an intervention is therefore due before the first
        // intervention, and after each one.
        let is_plain_due = match last_changed {
            Some(place) => last_plain < Some(place),
            None => last_plain.is_none() && change.is_some(),
        };
        if is_plain_due {
            return Some(NextRun::Plain);
        }
        change.map(NextRun::Changed)
    }

    /// Adds the evidence of a run of the kind `asked`. The evidence is `None` if a run of this kind
    /// is impossible on this path.
    pub fn add(&mut self, asked: NextRun, evidence: Option<RunEvidence>) {
        let Some(evidence) = evidence else {
            match asked {
                NextRun::Changed(change) => {
                    self.given_up.push(change);
                    self.impossible.push(change);
                }
                // Effects are relative to runs without an intervention. If such runs are impossible
                // on this path, no effect can be measured, and the diagnosis ends.
                NextRun::First | NextRun::Plain => self.end(),
            }
            return;
        };
        self.runs += 1;
        if contention(&evidence).is_some() {
            match asked {
                NextRun::Changed(change) if self.is_repeat => {
                    self.add_contended(change, evidence.clone());
                }
                _ => {}
            }
            self.contended.push(evidence);
            self.is_repeat = !self.is_repeat;
            return;
        }
        self.is_repeat = false;
        match asked {
            NextRun::First => self.first = Some(evidence),
            NextRun::Plain => self.plain.push((self.runs, evidence)),
            NextRun::Changed(change) => self.changed.push(ChangedRun {
                place: self.runs,
                change,
                evidence,
                is_contended: false,
            }),
        }
    }

    /// Adds the second contended attempt at a run with an intervention. Contention only slows a
    /// transfer down. So if this run is faster than every run without an intervention, the
    /// intervention raises the rate by at least this much. Otherwise the run proves nothing, and
    /// the intervention is given up.
    fn add_contended(&mut self, change: Change, evidence: RunEvidence) {
        if self.all_plain().all(|plain| plain.bytes_per_second < evidence.bytes_per_second) {
            let place = self.runs;
            self.changed.push(ChangedRun { place, change, evidence, is_contended: true });
        } else {
            self.given_up.push(change);
        }
    }

    /// Has the first run lost segments? Further runs must then be long enough to compare losses.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        let lost = |run: &RunEvidence| Figure::Losses.of(run);
        self.first.as_ref().and_then(lost).is_some_and(|lost| lost > 0.0)
    }

    /// Ends the diagnosis, because the time budget allows no further run.
    pub const fn end(&mut self) {
        self.is_out_of_time = true;
    }

    /// Returns the next intervention to try; `None` if no further one is needed or allowed. Untried
    /// interventions come first, those of the rules with the best scores before others. When all
    /// have been tried and no limit can be named, interventions with an unclear effect are
    /// repeated.
    fn wanted(&self) -> Option<Change> {
        if self.changed.len() >= MAX_CHANGES {
            return None;
        }
        let mut judged = self.judged();
        judged.sort_by(|one, other| other.score.total_cmp(&one.score));
        let tried = |change: Change| self.changed.iter().filter(|run| run.change == change).count();
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
            // An effect is only a lower bound if two attempts were contended, or if no data arrived
            // without the intervention. Measuring it again would not help.
            effect.is_none_or(|effect| {
                !is_lower_bound(effect) && one.compare(effect) == Outcome::Unclear
            })
        };
        find(&|one| tried(one.change()) == 0).or_else(|| {
            (self.verdict().limit == Limit::NotIdentified)
                .then(|| find(&|one| tried(one.change()) < MAX_REPEATS && is_unclear(one)))?
        })
    }

    /// Returns the rules that fit the first run, with the results of their expectations.
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
        // If counters are sufficient proof of the limit, interventions that were given up must not
        // reduce the confidence. Only groups with an intervention that was not given up are
        // therefore expected to be confirmed.
        let is_possible =
            |group: &[Expectation]| group.iter().any(|one| !self.given_up.contains(&one.change()));
        let expected = match rule.proof {
            Proof::Counters => rule.expectations.iter().filter(|group| is_possible(group)).count(),
            Proof::First | Proof::All => outcomes.len(),
        };
        Judged { rule, score, confirmed, is_first_confirmed, refuted, expected }
    }

    /// Returns the effect of each intervention that was tried. The rate is compared with two runs
    /// without an intervention: the last one before it and the first one after it.
    fn effects(&self) -> Vec<Effect> {
        let width = self.width();
        let effect = |changed: &ChangedRun| {
            let ChangedRun { place, change, evidence: run, is_contended } = changed;
            let before = self.plain.iter().rev().find(|(plain, _)| plain < place);
            let after = self.plain.iter().find(|(plain, _)| plain > place);
            let around = [before, after];
            let around: Vec<&RunEvidence> =
                around.into_iter().flatten().map(|(_, run)| run).collect();
            let plain = mean(around.iter().map(|run| run.bytes_per_second))?;
            let ratio = (run.bytes_per_second / plain).min(MAX_RATIO);
            if plain <= 0.0 {
                // If no data arrived without the intervention, the ratio of the two rates is not
                // defined. It is then reported as the largest possible ratio if data arrived with
                // the intervention, and as 1 if none did.
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
                high: if *is_contended { MAX_RATIO } else { high },
                losses: self.losses(run).filter(|_| !is_contended),
                queue_ratio: self.queue_ratio(run, &around).filter(|_| !is_contended),
            })
        };
        let mut effects: Vec<Vec<Effect>> = Vec::new();
        let is_superseded = |one: &ChangedRun| {
            let is_better = |other: &ChangedRun| other.change == one.change && !other.is_contended;
            one.is_contended && self.changed.iter().any(is_better)
        };
        for one in self.changed.iter().filter(|one| !is_superseded(one)).filter_map(effect) {
            match effects.iter_mut().find(|same| same[0].change == one.change) {
                Some(same) => same.push(one),
                None => effects.push(vec![one]),
            }
        }
        effects.iter().map(|same| Effect::mean(same)).collect()
    }

    /// Returns all uncontended runs without intervention, including the first one.
    fn all_plain(&self) -> impl Iterator<Item = &RunEvidence> {
        self.first.iter().chain(self.plain.iter().map(|(_, run)| run))
    }

    /// Compares the losses of `run` with those of all runs without an intervention. Returns `None`
    /// if the latter have no losses, or if a counter is absent. The counters include the start of
    /// each connection, because the observed part of a short run has too few losses to compare.
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

    /// Returns the ratio of the queueing delay of `run` to the mean queueing delay of `around`, the
    /// runs without an intervention before and after it. The queueing delay of a run is its mean
    /// round-trip time minus the shortest round-trip time of all runs. Returns `None` if the delay
    /// of `around` is 0, or if round-trip times are unknown.
    fn queue_ratio(&self, run: &RunEvidence, around: &[&RunEvidence]) -> Option<f64> {
        let all = self.all_plain().chain(self.changed.iter().map(|run| &run.evidence));
        let shortest = all
            .filter_map(|run| run.sender.connection.shortest_round_trip_micros)
            .min()
            .map(as_f64)?;
        let delay =
            |run: &RunEvidence| Some(run.sender.connection.round_trip_micros?.mean - shortest);
        let plain = mean(around.iter().filter_map(|run| delay(run)))?;
        (plain > 0.0).then_some((delay(run)? / plain).max(0.0))
    }

    /// Returns the relative half-width of an effect's interval. It is computed from the spread of
    /// the runs without an intervention, except the first run, which is longer.
    fn width(&self) -> f64 {
        if self.plain.len() < 2 {
            return UNKNOWN_WIDTH;
        }
        let logs = || self.plain.iter().map(|(_, run)| run.bytes_per_second.max(1.0).ln());
        let Some(centre) = mean(logs()) else { return MIN_WIDTH };
        let squares = logs().map(|log| (log - centre).powi(2)).sum::<f64>();
        let degrees = count_f64(self.plain.len() - 1);
        // An effect compares one run with the mean of two others. The variance of the difference is
        // the sum of their variances: 1 + 1/2 times that of a single run.
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
        // The verdict is less certain if another limit is nearly as likely. That limit is looked up
        // here. Other rules for the named limit are skipped, because they do not compete with it.
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

    /// Returns the verdict of a diagnosis that proved no limit: `Limit::Contended` if contention
    /// ended the diagnosis, else `Limit::NotIdentified`.
    fn not_identified(&self, plain: &RunEvidence) -> Verdict {
        if self.contended.len() >= MAX_CONTENDED {
            return self.contended_verdict();
        }
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
        let limit = if least.is_some() { Limit::Contended } else { Limit::NotIdentified };
        Verdict {
            limit,
            confidence: if least.is_some() { 1.0 } else { 0.0 },
            bytes_per_second: least.map_or(0.0, |run| run.bytes_per_second),
            evidence: evidence.into_iter().collect(),
            interventions: self.interventions(),
            skipped: self.impossible.clone(),
            advice: limit.advice(),
        }
    }

    fn interventions(&self) -> Vec<InterventionLine> {
        let line = |effect: Effect| InterventionLine {
            change: effect.change,
            effect: effect.ratio,
            interval: [effect.low, effect.high],
            is_lower_bound: is_lower_bound(&effect),
            loss_effect: effect.losses.map(Losses::ratio),
            queue_effect: effect.queue_ratio,
        };
        self.effects().into_iter().map(line).collect()
    }
}

impl Judged {
    /// Returns the confidence in the limit of this rule, between 0 and 1; `None` if the limit is
    /// refuted or not proved.
    fn confidence(&self) -> Option<f64> {
        let is_proved = match self.rule.proof {
            Proof::Counters => true,
            Proof::First => self.is_first_confirmed,
            Proof::All => self.confirmed == self.expected,
        };
        if self.refuted > 0 || !is_proved {
            return None;
        }
        // `unclear` is the fraction of expectations that are not confirmed. If none is confirmed,
        // the confidence is half of the score.
        let unclear = count_f64(self.expected - self.confirmed) / count_f64(self.expected.max(1));
        Some(self.score * (1.0 - 0.5 * unclear))
    }
}

/// Is the effect only a lower bound? It is if the runs with the intervention were contended, or if
/// no data arrived without it.
const fn is_lower_bound(effect: &Effect) -> bool {
    effect.high >= MAX_RATIO
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count();
    (count > 0).then(|| values.sum::<f64>() / count_f64(count))
}

#[allow(clippy::cast_precision_loss, reason = "a small number of runs")]
const fn count_f64(count: usize) -> f64 {
    count as f64
}
