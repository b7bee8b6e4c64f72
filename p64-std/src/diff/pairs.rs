//! Which tensor of one model is which of the other.

use super::{Chosen, bytes};
use crate::error::Result;
use p64_core::{DType, Shape};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::collections::{HashMap, VecDeque};

/// Places in the two lists; one of them is `None` for a tensor without a partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pair {
    pub a: Option<usize>,
    pub b: Option<usize>,
    pub moved: bool,
}

/// Pairs equal names, then, of what is left, equal contents.
pub(super) fn pair(a: &[Chosen<'_>], b: &[Chosen<'_>]) -> Result<Vec<Pair>> {
    let mut by_name: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (index, (tensor, _)) in b.iter().enumerate() {
        by_name.entry(&tensor.name).or_default().push_back(index);
    }
    let mut partners: Vec<Option<usize>> =
        a.iter().map(|(tensor, _)| by_name.get_mut(tensor.name.as_str())?.pop_front()).collect();
    let mut free: Vec<usize> = by_name.into_values().flatten().collect();
    free.sort_unstable();
    let alone: Vec<usize> = (0..a.len()).filter(|index| partners.get(*index) == Some(&None)).collect();
    for (index, partner) in by_content(a, &alone, b, &free)? {
        if let Some(slot) = partners.get_mut(index) {
            *slot = Some(partner);
            free.retain(|other| *other != partner);
        }
    }
    let stays = longest_run(&partners.iter().flatten().copied().collect::<Vec<_>>());
    let mut stays = stays.into_iter();
    let pairs = partners.iter().enumerate().map(|(index, partner)| {
        let moved = partner.is_some() && !stays.next().unwrap_or(true);
        Pair { a: Some(index), b: *partner, moved }
    });
    let added = free.into_iter().map(|index| Pair { a: None, b: Some(index), moved: false });
    Ok(pairs.chain(added).collect())
}

type Content = (DType, Shape, u64);

/// Pairs of tensors with equal type, shape and bytes, each used once, in order.
fn by_content(a: &[Chosen<'_>], alone: &[usize], b: &[Chosen<'_>], free: &[usize]) -> Result<Vec<(usize, usize)>> {
    let key = |tensors: &[Chosen<'_>], index: usize| tensors.get(index).map(|(tensor, _)| (tensor.dtype, tensor.shape));
    let shared = |mine: &[usize], my: &[Chosen<'_>], others: &[usize], other: &[Chosen<'_>]| {
        let keys: std::collections::HashSet<_> = others.iter().filter_map(|index| key(other, *index)).collect();
        let has = |index: &usize| key(my, *index).is_some_and(|key| keys.contains(&key));
        mine.iter().copied().filter(has).collect::<Vec<_>>()
    };
    let (left, right) = (shared(alone, a, free, b), shared(free, b, alone, a));
    let (left, right) = (checksums(a, &left)?, checksums(b, &right)?);
    let mut candidates: HashMap<Content, VecDeque<usize>> = HashMap::new();
    for (content, index) in right {
        candidates.entry(content).or_default().push_back(index);
    }
    let mut found = Vec::new();
    for (content, index) in left {
        let Some(queue) = candidates.get_mut(&content) else { continue };
        // Equal checksums are a hint only.
        for at in 0..queue.len() {
            let other = queue.get(at).copied().unwrap_or_default();
            let (Some((_, here)), Some((_, there))) = (a.get(index), b.get(other)) else { continue };
            if bytes::first_difference(here.payload.as_ref(), there.payload.as_ref())?.is_none() {
                queue.remove(at);
                found.push((index, other));
                break;
            }
        }
    }
    Ok(found)
}

fn checksums(tensors: &[Chosen<'_>], chosen: &[usize]) -> Result<Vec<(Content, usize)>> {
    let one = |index: &usize| {
        let (tensor, source) = tensors.get(*index)?;
        let checksum = bytes::checksum(source.payload.as_ref());
        Some(checksum.map(|checksum| ((tensor.dtype, tensor.shape, checksum), *index)))
    };
    chosen.par_iter().filter_map(one).collect()
}

/// Which of the numbers belong to a longest rising run, not necessarily of neighbours.
fn longest_run(numbers: &[usize]) -> Vec<bool> {
    // tails[n]: place of the least number that ends a run of n + 1; before[i]: place of i's predecessor in its run.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    let at = |place: usize| numbers.get(place).copied().unwrap_or_default();
    for (place, number) in numbers.iter().enumerate() {
        let len = tails.partition_point(|tail| at(*tail) < *number);
        before.push(len.checked_sub(1).and_then(|last| tails.get(last).copied()));
        match tails.get_mut(len) {
            Some(tail) => *tail = place,
            None => tails.push(place),
        }
    }
    let mut stays = vec![false; numbers.len()];
    let mut next = tails.last().copied();
    while let Some(place) = next {
        if let Some(slot) = stays.get_mut(place) {
            *slot = true;
        }
        next = before.get(place).copied().flatten();
    }
    stays
}

#[cfg(test)]
mod tests {
    use super::longest_run;

    #[test]
    fn what_stays_is_as_much_as_can() {
        let stays = |numbers: &[usize]| longest_run(numbers).iter().filter(|stays| **stays).count();
        assert_eq!(longest_run(&[0, 1, 2]), [true, true, true]);
        assert_eq!(longest_run(&[3, 0, 1, 2]), [false, true, true, true]);
        assert_eq!(longest_run(&[0, 3, 1, 2, 4]), [true, false, true, true, true]);
        assert_eq!((stays(&[]), stays(&[5, 4, 3, 2, 1])), (0, 1));
    }
}
