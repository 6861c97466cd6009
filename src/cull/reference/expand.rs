//! Twins of the expansions: what pass 1 writes, and the items that pass 2 finds in it.
//!
//! The twins of pass 2 call `expand(source, item)` for the same items, in different orders.

mod buckets;
#[cfg(feature = "study")]
mod lists;
mod scan;
#[cfg(feature = "study")]
mod search;

pub use buckets::{
    BucketEntries, Po2Entry, lanes_one_bucket, lanes_po2_buckets, one_bucket, one_bucket_items,
    plan_buckets, po2_bucket_items, po2_buckets,
};
#[cfg(feature = "study")]
pub use lists::{item_list, list_items, weight_of_groups, workgroup_items};
pub use scan::{exact_items, expand_place_of, expand_scan, expand_spine, measure, sum_items};
#[cfg(feature = "study")]
pub use search::{Packed, fixed_items, pack, packed_items, search, search_items, span_items};

#[cfg(all(test, feature = "study"))]
mod tests {
    use super::*;
    use crate::cull::layout::expand::EXPAND_BUCKETS;
    use proptest::prelude::*;

    /// Each item once, by definition.
    fn expected(counts: &[u32]) -> Vec<(u32, u32)> {
        let sources = counts.iter().zip(0..);
        sources
            .flat_map(|(count, source)| (0..*count).map(move |item| (source, item)))
            .collect()
    }

    fn seen(run: impl FnOnce(&mut dyn FnMut(u32, u32))) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        run(&mut |source, item| all.push((source, item)));
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn every_expansion_gives_every_item_once(
            counts in proptest::collection::vec(prop_oneof![Just(0u32), 0..5u32, 0..300u32], 0..2500),
        ) {
            let all = expected(&counts);
            let (mut prefixes, mut partials) = expand_scan(&counts, |items| items);
            let total = expand_spine(&mut partials);
            prop_assert_eq!(total as usize, all.len());
            let (max, sum) = measure(&counts);
            prop_assert_eq!(sum, total);
            prop_assert_eq!(seen(|expand| fixed_items(&counts, max, expand)), all.clone());
            let list = item_list(&counts, &prefixes, &partials, u32::MAX);
            prop_assert_eq!(seen(|expand| list_items(&list, expand)), all.clone());
            let found = seen(|expand| search_items(&prefixes, &partials, total, expand));
            prop_assert_eq!(found, all.clone());
            let found = seen(|expand| span_items(&prefixes, &partials, total, expand));
            prop_assert_eq!(found, all.clone());
            let reversed: Vec<_> = (0..counts.len().div_ceil(1024) as u32).rev().collect();
            let packed = pack(&counts, &reversed);
            prop_assert_eq!(seen(|expand| packed_items(&packed, total, expand)), all.clone());
            (prefixes, partials) = expand_scan(&counts, weight_of_groups);
            expand_spine(&mut partials);
            let groups = item_list(
                &counts.iter().map(|n| weight_of_groups(*n)).collect::<Vec<_>>(),
                &prefixes, &partials, u32::MAX,
            );
            prop_assert_eq!(seen(|expand| workgroup_items(&groups, &counts, expand)), all.clone());
            let entries = po2_buckets(&counts);
            let (buckets, _) = plan_buckets(&entries.firsts, total, u32::MAX, lanes_po2_buckets);
            let found = seen(|expand| po2_bucket_items(&entries.entries, &buckets, &counts, expand));
            prop_assert_eq!(found, all.clone());
            let entries = one_bucket(&counts);
            let (buckets, _) = plan_buckets(&entries.firsts, total, u32::MAX, lanes_one_bucket);
            let found = seen(|expand| one_bucket_items(&entries.entries, &buckets, &counts, expand));
            prop_assert_eq!(found, all);
        }
    }

    #[test]
    fn sums_saturate() {
        let huge = [u32::MAX, 1, 0x8000_0000];
        let (_, mut partials) = expand_scan(&huge, |items| items);
        assert_eq!(partials, [u32::MAX]);
        assert_eq!(expand_spine(&mut partials), u32::MAX);
        assert_eq!(measure(&huge), (u32::MAX, u32::MAX));
        let mut partials = vec![u32::MAX - 1, 1, 1];
        assert_eq!(expand_spine(&mut partials), u32::MAX);
    }

    #[test]
    fn an_entry_of_the_buckets_stands_for_up_to_32_set_bits() {
        let entries = po2_buckets(&[5, 2, 7, 0]);
        let shown: Vec<_> = entries.entries.iter().map(|e| (e.word, e.mask)).collect();
        assert_eq!(shown, [(0, 0b0101), (0, 0b0110), (0, 0b0101)]);
        assert_eq!(entries.firsts[..4], [0, 1, 2, 3]);
        assert_eq!(entries.firsts.len(), EXPAND_BUCKETS as usize + 1);
    }
}
