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
/// Maximum number of runs with an intervention. After them, no further intervention is tried.
/// Contended runs count only if an effect is computed from them.
const MAX_CHANGES: usize = 12;
/// Maximum number of runs with one intervention, if its effect remains unclear.
const MAX_REPEATS: usize = 3;
/// Minimum score of a rule for its interventions to be tried.
const MIN_TRIED_SCORE: f64 = 0.05;
/// Minimum confidence for a limit to be named.
pub(super) const MIN_CONFIDENCE: f64 = 0.3;
/// Minimum difference between the confidence in the most likely limit and the confidence in any
/// other limit. With a smaller difference, no limit is named.
pub(super) const MIN_LEAD: f64 = 0.2;
/// Minimum relative half-width of an effect's interval. Even if the rates of runs hardly differ,
/// inexact clocks and scheduling leave this uncertainty.
const MIN_WIDTH: f64 = 0.03;
/// Relative half-width of an effect's interval while fewer than two runs without intervention have
/// followed the first run. One run does not show how much rates scatter.
const UNKNOWN_WIDTH: f64 = 0.25;
/// Maximum ratio of rates that is reported as an effect. It stands for an infinite ratio if data
/// arrived with the intervention but none without it.
const MAX_RATIO: f64 = 1_000.0;
/// Half-width of an interval, in standard deviations of the difference between two runs.
const WIDTH: f64 = 2.0;

/// The kind of the run that a diagnosis needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// The first run. It has no intervention, and is at least as long as all other runs.
    First,
    /// A further run without an intervention, with which the interventions before and after it are
    /// compared.
    Plain,
    /// A run with the given intervention.
    Changed(Change),
}

/// The state of a diagnosis: the evidence of its runs so far, from which the next run and the
/// verdict are derived.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// The first run without contention. It is longer than later runs, so slow start is a smaller
    /// part of it, and its rate is not comparable. Effects on the rate are therefore computed from
    /// the other runs without intervention.
    first: Option<RunEvidence>,
    /// Later uncontended runs without intervention, each with its position among all runs.
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
    /// Was the previous run a contended first attempt? The next run then repeats it.
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

/// A rule with its score, and the results of its groups of expectations. In each group, the first
/// expectation whose intervention has not been given up gives the result.
struct Judged {
    rule: &'static Rule,
    score: f64,
    /// Number of confirmed groups of expectations.
    confirmed: usize,
    is_first_confirmed: bool,
    /// Number of refuted groups of expectations.
    refuted: usize,
    /// Number of groups of expectations that would all have to be confirmed for full confidence.
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
        // The rate with an intervention is compared with two runs without one: the nearest before
        // it and the nearest after it. A run without an intervention is therefore due before the
        // first intervention, and after each one.
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
    /// transfer down. If this run is nevertheless faster than every run without an intervention,
    /// the intervention raises the rate by at least the observed ratio. Otherwise the run proves
    /// nothing, and the intervention is given up.
    fn add_contended(&mut self, change: Change, evidence: RunEvidence) {
        if self.all_plain().all(|plain| plain.bytes_per_second < evidence.bytes_per_second) {
            let place = self.runs;
            self.changed.push(ChangedRun { place, change, evidence, is_contended: true });
        } else {
            self.given_up.push(change);
        }
    }

    /// Has the first run lost segments? If so, all later runs must be long enough to compare loss
    /// rates.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        let lost = |run: &RunEvidence| Figure::Losses.of(run);
        self.first.as_ref().and_then(lost).is_some_and(|lost| lost > 0.0)
    }

    /// Ends the diagnosis, because the time budget allows no further run.
    pub const fn end(&mut self) {
        self.is_out_of_time = true;
    }

    /// Returns the next intervention to try; `None` if no further one is needed or allowed.
    /// Interventions that have not been tried come first, in the order of the scores of their
    /// rules. After that, if no limit can be named yet, interventions with an unclear effect are
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
            // The effect of an intervention is known only as a lower bound in two cases: other
            // programs disturbed both runs with it, or no data arrived without it. A further run
            // would not change that.
            effect.is_none_or(|effect| {
                !is_lower_bound(effect) && one.compare(effect) == Outcome::Unclear
            })
        };
        find(&|one| tried(one.change()) == 0).or_else(|| {
            (self.verdict().limit == Limit::NotIdentified)
                .then(|| find(&|one| tried(one.change()) < MAX_REPEATS && is_unclear(one)))?
        })
    }

    /// Returns the rules whose conditions the first run meets at least partly, with the results of
    /// their expectations.
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
        // If the rule accepts counters as proof, interventions that were given up must not reduce
        // the confidence. Groups that contain only such interventions are therefore not counted as
        // expected.
        let is_possible =
            |group: &[Expectation]| group.iter().any(|one| !self.given_up.contains(&one.change()));
        let expected = match rule.proof {
            Proof::Counters => rule.expectations.iter().filter(|group| is_possible(group)).count(),
            Proof::First | Proof::All => outcomes.len(),
        };
        Judged { rule, score, confirmed, is_first_confirmed, refuted, expected }
    }

    /// Returns the effect of each intervention that was tried. Its rate is compared with the mean
    /// rate of the nearest run without an intervention before it and the nearest one after it.
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
    /// if the runs without an intervention have no losses, or if a counter is absent. The counters
    /// also cover the time before the observed part, because the observed part of a short run has
    /// too few losses to compare.
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

    /// Returns the relative half-width of an effect's interval. It is computed from how much the
    /// runs without an intervention differ in rate. The first run is excluded, because it is
    /// longer.
    fn width(&self) -> f64 {
        if self.plain.len() < 2 {
            return UNKNOWN_WIDTH;
        }
        let logs = || self.plain.iter().map(|(_, run)| run.bytes_per_second.max(1.0).ln());
        let Some(centre) = mean(logs()) else { return MIN_WIDTH };
        let squares = logs().map(|log| (log - centre).powi(2)).sum::<f64>();
        let degrees = count_f64(self.plain.len() - 1);
        // An effect compares one run with the mean of two others. Variances add up: that of a
        // single run, plus half of it for the mean of two runs. The sum is 1.5 times the variance
        // of a run.
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
        // The rival is the most likely limit other than the named one. The verdict is less certain
        // if the rival is nearly as likely. Other rules for the named limit support it and are no
        // rivals.
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

    /// Returns the verdict of a diagnosis that can name no limit of the path: `Limit::Contended` if
    /// contention ended the diagnosis, otherwise `Limit::NotIdentified`.
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
        // `unclear` is the fraction of expected confirmations that are missing. If all are missing,
        // the confidence is half of the score.
        let unclear = count_f64(self.expected - self.confirmed) / count_f64(self.expected.max(1));
        Some(self.score * (1.0 - 0.5 * unclear))
    }
}

/// Is the effect only a lower bound of the true effect? It is if the runs with the intervention
/// were contended, or if no data arrived without the intervention.
const fn is_lower_bound(effect: &Effect) -> bool {
    effect.high >= MAX_RATIO
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.clone().count();
    (count > 0).then(|| values.sum::<f64>() / count_f64(count))
}

#[allow(clippy::cast_precision_loss, reason = "a small number of runs or expectations")]
pub(super) const fn count_f64(count: usize) -> f64 {
    count as f64
}
