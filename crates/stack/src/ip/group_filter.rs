//! The source filter of a multicast group (RFC 3376 §3).

use alloc::collections::BTreeSet;
use core::net::IpAddr;

/// A source filter: the sources from which a socket or a host receives the datagrams of a multicast
/// group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The filter mode: if true (EXCLUDE), the filter admits all sources except `sources`; if false
    /// (INCLUDE), it admits only `sources`.
    pub(crate) is_exclude: bool,
    pub(crate) sources: BTreeSet<IpAddr>,
}

impl Filter {
    /// Creates a filter that admits all sources.
    pub(crate) const fn any_source() -> Self {
        Self { is_exclude: true, sources: BTreeSet::new() }
    }

    /// Creates a filter that admits only `source`.
    pub(crate) fn one_source(source: IpAddr) -> Self {
        Self { is_exclude: false, sources: BTreeSet::from([source]) }
    }

    /// Does the filter admit this source?
    pub(crate) fn admits(&self, source: IpAddr) -> bool {
        self.sources.contains(&source) != self.is_exclude
    }

    /// Does the filter admit no source? A group without members has such a filter.
    pub(crate) fn admits_none(&self) -> bool {
        !self.is_exclude && self.sources.is_empty()
    }

    /// Returns the union of `filters`: the filter that admits exactly the sources that at least one
    /// of `filters` admits (RFC 3376 §3.2).
    pub(crate) fn union<'a>(filters: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mut excluding = filters.clone().filter(|filter| filter.is_exclude);
        let mut included: BTreeSet<IpAddr> = filters
            .filter(|filter| !filter.is_exclude)
            .flat_map(|filter| filter.sources.iter().copied())
            .collect();
        let Some(first) = excluding.next() else {
            return Self { is_exclude: false, sources: included };
        };
        let mut excluded = first.sources.clone();
        excluding.for_each(|filter| excluded.retain(|source| filter.sources.contains(source)));
        excluded.retain(|source| !included.remove(source));
        Self { is_exclude: true, sources: excluded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(is_exclude: bool, sources: &[u8]) -> Filter {
        let sources = sources.iter().map(|&last| [10, 0, 0, last].into()).collect();
        Filter { is_exclude, sources }
    }

    /// For each example of RFC 3376 §3.2, the union of the filters is the union that the RFC
    /// states.
    #[test]
    fn the_union_is_that_of_the_rfc() {
        let union = |filters: &[Filter]| Filter::union(filters.iter());
        let (a, b, c) = (1, 2, 3);
        let (d, e, f) = (4, 5, 6);
        let excluding = [filter(true, &[a, b, c, d]), filter(true, &[b, c, d, e])];
        let mut filters = excluding.to_vec();
        filters.push(filter(false, &[d, e, f]));
        assert_eq!(union(&filters), filter(true, &[b, c]));
        assert_eq!(union(&excluding), filter(true, &[b, c, d]));
        let including = [filter(false, &[a, b, c]), filter(false, &[b, c, d])];
        assert_eq!(union(&including), filter(false, &[a, b, c, d]));
        assert!(union(&[]).admits_none());
    }

    #[test]
    fn a_filter_admits_the_listed_sources_or_the_others() {
        let source = IpAddr::from([10, 0, 0, 1]);
        assert!(filter(false, &[1]).admits(source) && !filter(false, &[2]).admits(source));
        assert!(!filter(true, &[1]).admits(source) && Filter::any_source().admits(source));
        assert!(!Filter::any_source().admits_none());
    }
}
