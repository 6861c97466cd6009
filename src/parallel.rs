//! Loops over many instances, on all cores.

use std::thread;

/// Smallest number of items for which another thread pays off.
const MIN: usize = 1 << 16;

/// Number of items per part, so that each core has one part.
fn part_of(len: usize) -> usize {
    let cores = if cfg!(target_family = "wasm") {
        1
    } else {
        thread::available_parallelism().map_or(1, usize::from)
    };
    len.div_ceil(cores).max(MIN)
}

/// Runs `work` on every item, each on a separate thread, and returns the results in order. A panic
/// of a thread continues here.
fn on_threads<T: Send, R: Send>(
    items: impl ExactSizeIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    if items.len() <= 1 {
        return items.map(work).collect();
    }
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// Runs `work` on every item, each on a separate thread: for few and large items.
pub(crate) fn each<T: Send>(items: impl ExactSizeIterator<Item = T>, work: impl Fn(T) + Sync) {
    if cfg!(target_family = "wasm") {
        items.for_each(work);
    } else {
        on_threads(items, work);
    }
}

/// The values of `make` for 0, 1 and so on.
pub(crate) fn collect<T: Copy + Default + Send>(
    len: usize,
    make: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut values = vec![T::default(); len];
    let part = part_of(len);
    on_threads(values.chunks_mut(part).enumerate(), |(index, values)| {
        let first = index * part;
        for (value, at) in values.iter_mut().zip(first..) {
            *value = make(at);
        }
    });
    values
}

/// Sorts; the sort is stable.
pub(crate) fn sort<T: Ord + Send>(values: &mut [T]) {
    let part = part_of(values.len());
    on_threads(values.chunks_mut(part), <[T]>::sort);
    // The parts are sorted runs, which a stable sort only merges.
    values.sort();
}

/// Combines what `work` returns for the parts of `values`; `None` without values.
pub(crate) fn reduce<T: Sync, R: Send>(
    values: &[T],
    work: impl Fn(&[T]) -> R + Sync,
    join: impl Fn(R, R) -> R,
) -> Option<R> {
    let parts = values.chunks(part_of(values.len()));
    on_threads(parts, work).into_iter().reduce(join)
}

/// Changes parts of `values`; `work` also gets the index of each part's first value. Returns the
/// error of the first part that fails.
pub(crate) fn try_each_part<T: Send, E: Send>(
    values: &mut [T],
    work: impl Fn(usize, &mut [T]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let part = part_of(values.len());
    let done = on_threads(values.chunks_mut(part).enumerate(), |(index, values)| {
        work(index * part, values)
    });
    done.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_come_in_order() {
        for len in [0, 1, MIN - 1, MIN, 3 * MIN + 5] {
            let mut values = collect(len, |i| len - i);
            assert!(values.iter().copied().eq((1..=len).rev()));
            sort(&mut values);
            assert!(values.iter().copied().eq(1..=len));
            let sum = reduce(&values, |part| part.iter().sum::<usize>(), |a, b| a + b);
            assert_eq!(sum, (len > 0).then_some(len * (len + 1) / 2));
        }
    }

    #[test]
    fn the_first_failure_is_reported() {
        let mut values = vec![0usize; 8 * MIN];
        let done = try_each_part(&mut values, |first, part| {
            part.iter_mut().zip(first..).for_each(|(v, i)| *v = i);
            if part.contains(&(3 * MIN)) {
                Err(part.len())
            } else {
                Ok(())
            }
        });
        assert!(done.is_err());
        assert!(values.iter().copied().eq(0..8 * MIN));
    }
}
