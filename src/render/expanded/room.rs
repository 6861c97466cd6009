//! How the room for uniforms is divided among the draws.

use super::draws::{DrawKey, ExpandedDraw, ExpandedDraws};
use crate::{
    cull::FrameCounts,
    render::views::{FrameView, view_at},
};
use bevy::{
    log::{warn, warn_once},
    platform::collections::HashMap,
};

/// Number of uniforms that there is room for without asking how many instances survive (176 MiB).
/// Beyond it, the room follows the counters.
const BUDGET: u64 = 1 << 20;

/// What earlier frames say about the room that draws need.
#[derive(Default)]
pub(super) struct UniformBudget {
    /// The largest number of survivors that was counted.
    pub peaks: HashMap<DrawKey, u32>,
    /// Whether the buffer has reached the binding limit and cannot grow.
    is_full: bool,
    /// The largest number of survivors without room that was logged.
    told: u32,
}

impl UniformBudget {
    /// Gives each draw its place: room for all its instances or, if that exceeds the budget, for
    /// twice the survivors that were counted, and at least for a share of the budget. `max` is the
    /// number of uniforms that a binding holds. Returns the number of uniforms of all draws.
    pub fn divide(&mut self, draws: &mut [ExpandedDraw], max: u64) -> u64 {
        let all: u64 = draws.iter().map(|draw| u64::from(draw.job.room)).sum();
        let budget = BUDGET.min(max);
        let mut first = 0u64;
        for draw in draws {
            let job = &mut draw.job;
            if all > budget {
                let counted = 2 * u64::from(self.peaks.get(&draw.key).copied().unwrap_or(0));
                let share = (budget / 2) * u64::from(job.room) / all;
                job.room = u64::from(job.room).min(counted.max(share)) as u32;
            }
            job.room = u64::from(job.room).min(max.saturating_sub(first)) as u32;
            job.first = first as u32;
            first += u64::from(job.room);
        }
        self.is_full = first >= max;
        first
    }

    /// Learns from the counters of an earlier frame with these views, and logs a warning if
    /// survivors did not fit.
    pub fn learn(&mut self, draws: &ExpandedDraws, counts: &FrameCounts, views: &[FrameView]) {
        if draws.all.is_empty() {
            self.peaks.clear();
            return;
        }
        let mut sums: HashMap<DrawKey, u32> = HashMap::new();
        for row in &counts.rows {
            if let Some(view) = view_at(views, row.view) {
                let key = DrawKey {
                    request: row.request,
                    view: view.key,
                };
                *sums.entry(key).or_default() += row.visible;
            }
        }
        let mut missing = 0;
        // What is drawn no more needs no memory.
        self.peaks.retain(|key, _| !draws.of(key).is_empty());
        for (key, room) in draws.rooms() {
            let Some(visible) = sums.get(&key) else {
                continue;
            };
            missing += visible.saturating_sub(room);
            let peak = self.peaks.entry(key).or_default();
            *peak = (*peak).max(*visible);
        }
        if missing > 0 && self.is_full {
            warn_once!(
                "{missing} visible instances have no room for their MeshUniform and are not drawn: this adapter binds \
                 no more; a vertex shader that imports bevy_gpu_culling::draw_instance needs none"
            );
        } else if missing > self.told {
            // Once, and again if more is lost.
            self.told = missing;
            warn!(
                "{missing} visible instances had no room for their MeshUniform and were not drawn in one frame: the \
                 room grows"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pass::UniformJob, *};
    use bevy::{prelude::Entity, render::view::RetainedViewEntity};

    fn draw(room: u32, request: u64) -> ExpandedDraw {
        ExpandedDraw {
            job: UniformJob {
                room,
                ..UniformJob::default()
            },
            batch: 0,
            slot: 0,
            key: DrawKey {
                request,
                view: RetainedViewEntity::new(Entity::PLACEHOLDER.into(), None, 0),
            },
        }
    }

    #[test]
    fn room_is_for_all_or_follows_the_counters() {
        let divide = |budget: &mut UniformBudget, rooms: [u32; 2]| {
            let mut draws = [draw(rooms[0], 1), draw(rooms[1], 2)];
            let total = budget.divide(&mut draws, 1000);
            (total, draws.map(|draw| (draw.job.first, draw.job.room)))
        };
        let mut budget = UniformBudget::default();
        let both = [(0, 100), (100, 50)];
        assert_eq!(divide(&mut budget, [100, 50]), (150, both));
        // Too much for a binding: shares of half of it, then what was counted.
        let shares = [(0, 375), (375, 125)];
        assert_eq!(divide(&mut budget, [3000, 1000]), (500, shares));
        let key = draw(0, 2).key;
        budget.peaks.insert(key, 200);
        let counted = [(0, 375), (375, 400)];
        assert_eq!(divide(&mut budget, [3000, 1000]), (775, counted));
        assert!(!budget.is_full);
        budget.peaks.insert(key, 900);
        let full = [(0, 375), (375, 625)];
        assert_eq!(divide(&mut budget, [3000, 1000]), (1000, full));
        assert!(budget.is_full);
    }
}
