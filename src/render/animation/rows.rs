//! The rows of the texture of poses: which poses have which.

use super::table::PoseEntry;
use core::ops::Range;

/// `POSES_WIDTH` in `shaders/draw/animation.wesl`: texels of a row.
pub(super) const WIDTH: u32 = 2048;

/// Poses in the texture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HeldPoses {
    /// [`PoseEntry::version`].
    pub version: u64,
    pub rows: Range<u32>,
}

/// Which poses got rows, and which did not; by their places in the table, from 0 on.
#[derive(Debug, PartialEq)]
pub(super) struct Placed {
    pub new: Vec<usize>,
    pub left_out: Vec<usize>,
}

/// Gives rows behind the first to all poses that have none: the first gap that is large enough. If
/// there is none, the poses that have rows move together.
pub(super) fn place(
    held: &mut [Option<HeldPoses>],
    entries: &[PoseEntry],
    max_rows: u32,
) -> Placed {
    let mut used = used_rows(held);
    let mut placed = Placed {
        new: Vec::new(),
        left_out: Vec::new(),
    };
    for (place, entry) in entries.iter().enumerate() {
        let Some(poses) = entry.poses.as_ref().filter(|_| held[place].is_none()) else {
            continue;
        };
        let count = poses.texel_count().div_ceil(u64::from(WIDTH));
        let taken = used.iter().map(|rows| rows.len() as u64).sum::<u64>();
        if place + 1 >= WIDTH as usize || 1 + taken + count > u64::from(max_rows) {
            placed.left_out.push(place);
            continue;
        }
        let count = count as u32;
        let rows = gap(&used, count, max_rows).unwrap_or_else(|| {
            placed.new.extend(pack(held));
            used = used_rows(held);
            let end = used.last().map_or(1, |rows| rows.end);
            end..end + count
        });
        let at = used.partition_point(|used| used.start < rows.start);
        used.insert(at, rows.clone());
        held[place] = Some(HeldPoses {
            version: entry.version,
            rows,
        });
        placed.new.push(place);
    }
    placed.new.sort_unstable();
    placed.new.dedup();
    placed
}

/// The rows that poses have, in ascending order.
fn used_rows(held: &[Option<HeldPoses>]) -> Vec<Range<u32>> {
    let used = held.iter().flatten().map(|held| held.rows.clone());
    let mut used: Vec<_> = used.collect();
    used.sort_unstable_by_key(|rows| rows.start);
    used
}

/// Moves all poses together, in the order of their rows. Returns those that moved.
pub(super) fn pack(held: &mut [Option<HeldPoses>]) -> Vec<usize> {
    let mut by_row: Vec<_> = held.iter_mut().enumerate().collect();
    by_row.sort_by_key(|(_, held)| held.as_ref().map(|held| held.rows.start));
    let mut end = 1;
    let mut moved = Vec::new();
    for (place, held) in by_row {
        let Some(held) = held else { continue };
        let rows = end..end + held.rows.len() as u32;
        if rows != held.rows {
            moved.push(place);
        }
        end = rows.end;
        held.rows = rows;
    }
    moved
}

/// The first rows that none of `used`, in ascending order, has.
fn gap(used: &[Range<u32>], count: u32, max_rows: u32) -> Option<Range<u32>> {
    let mut end = 1;
    for rows in used {
        if rows.start - end >= count {
            break;
        }
        end = rows.end;
    }
    (max_rows - end >= count).then(|| end..end + count)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::render::animation::{AnimationPoses, PoseClip};
    use bevy::{
        asset::{AssetId, uuid::Uuid},
        math::Affine3A,
    };

    fn entry(version: u64, poses: usize) -> PoseEntry {
        let clip = PoseClip {
            poses: vec![vec![Affine3A::IDENTITY; 7]; poses],
            seconds: 1.0,
            loops: true,
        };
        PoseEntry {
            id: AssetId::Uuid {
                uuid: Uuid::from_u128(u128::from(version)),
            },
            version,
            poses: (poses > 0).then(|| AnimationPoses::new([clip]).unwrap()),
        }
    }

    fn rows(held: &[Option<HeldPoses>]) -> Vec<Option<Range<u32>>> {
        let rows = |held: &Option<HeldPoses>| Some(held.as_ref()?.rows.clone());
        held.iter().map(rows).collect()
    }

    #[test]
    fn poses_keep_their_rows_and_others_fill_the_gaps() {
        // One row, none, three rows, one row.
        let mut entries = vec![entry(1, 3), entry(2, 0), entry(3, 400), entry(4, 2)];
        let mut held = vec![None; 4];
        let placed = place(&mut held, &entries, 9);
        assert_eq!((placed.new, placed.left_out), (vec![0, 2, 3], vec![]));
        assert_eq!(rows(&held), [Some(1..2), None, Some(2..5), Some(5..6)]);
        // The large ones go, and a small one comes: it has the first of their rows.
        (entries[2], held[2]) = (entry(5, 0), None);
        entries[1] = entry(6, 1);
        let placed = place(&mut held, &entries, 9);
        assert_eq!((placed.new, placed.left_out), (vec![1], vec![]));
        assert_eq!(rows(&held), [Some(1..2), Some(2..3), None, Some(5..6)]);
        // No gap has three rows: what is there moves together.
        entries[2] = entry(7, 400);
        let placed = place(&mut held, &entries, 7);
        assert_eq!((placed.new, placed.left_out), (vec![2, 3], vec![]));
        assert_eq!(
            rows(&held),
            [Some(1..2), Some(2..3), Some(4..7), Some(3..4)]
        );
        // What goes leaves a gap, which packing closes.
        let mut packed = held.clone();
        packed[2] = None;
        packed[1] = None;
        assert_eq!(pack(&mut packed), [3]);
        assert_eq!(rows(&packed), [Some(1..2), None, None, Some(2..3)]);
        // What does not fit leaves the others alone.
        entries.push(entry(8, 400));
        held.push(None);
        let placed = place(&mut held, &entries, 9);
        assert_eq!((placed.new, placed.left_out), (vec![], vec![4]));
        assert_eq!(held[4], None);
    }

    #[test]
    fn poses_before_those_that_fit_are_none_of_them() {
        // The first is too large; the second is there.
        let entries = [entry(1, 400), entry(2, 3)];
        let mut held = vec![None; 2];
        let placed = place(&mut held, &entries, 3);
        assert_eq!((placed.new, placed.left_out), (vec![1], vec![0]));
        assert_eq!(rows(&held), [None, Some(1..2)]);
    }
}
