//! Views that hide only while that pays
//! ([`InstanceOcclusion::auto`](crate::render::InstanceOcclusion::auto)).
//!
//! The counters of a view say what it hides. If several of them in a row say that it is little, the
//! view hides nothing for some frames, and then tries again:
//!
//! ```text
//! counters    + + - + - - - - - -                   - - - - - -
//! frames      hides              | pauses for 60    | hides     | pauses for 120
//! ```
//!
//! A view that pauses draws what its frustum keeps, so the picture is the same.

use crate::{
    cull::{DrawList, FrameCounts},
    render::views::FrameView,
};
use bevy::{
    log::debug, platform::collections::HashMap, prelude::*, render::view::RetainedViewEntity,
};

/// Number of counters in a row that say that hiding does not pay, before a view pauses.
const TRIAL: u32 = 6;
/// Frames of the first pause. Each further one is twice as long.
const FIRST_PAUSE: u64 = 60;
/// Frames of the longest pause: what is hidden by then is drawn in vain for that long.
const LONGEST_PAUSE: u64 = 240;
/// Hiding pays if the view hides at least this part of the instances in its frustum.
const MIN_SHARE: u64 = 8;
/// Hiding pays if what is hidden has at least this number of triangles. A GPU that draws two
/// billion in a second takes 0.07 ms for them, about what the test costs where nothing is hidden.
const MIN_TRIANGLES: u64 = 1 << 17;

/// The views that may pause.
#[derive(Resource, Default)]
pub(in crate::render) struct OcclusionPauses {
    /// Number of frames so far.
    frame: u64,
    views: HashMap<RetainedViewEntity, ViewPause>,
}

/// What is known of a view.
struct ViewPause {
    /// Number of counters in a row that say that hiding does not pay.
    losses: u32,
    /// The frame in which the pause ends, or ended.
    ends: u64,
    /// Frames of the next pause.
    next: u64,
    /// The last frame that had the view.
    seen_in: u64,
}

impl Default for ViewPause {
    fn default() -> Self {
        Self {
            losses: 0,
            ends: 0,
            next: FIRST_PAUSE,
            seen_in: 0,
        }
    }
}

impl OcclusionPauses {
    /// Whether a view pauses in this frame.
    pub fn pauses(&self, view: &RetainedViewEntity) -> bool {
        let known = self.views.get(view);
        known.is_some_and(|known| known.ends > self.frame)
    }

    /// Starts a frame, in which these views may pause. What is known of others is forgotten.
    pub fn start_frame(&mut self, views: impl Iterator<Item = RetainedViewEntity>) {
        self.frame += 1;
        let now = self.frame;
        for view in views {
            self.views.entry(view).or_default().seen_in = now;
        }
        self.views.retain(|_, known| known.seen_in == now);
    }

    /// Learns from the counters of what a view hid in an earlier frame, if it may pause.
    pub fn learn(&mut self, view: &FrameView, counts: &FrameCounts) {
        let frame = self.frame;
        let Some(known) = self.views.get_mut(&view.key) else {
            return;
        };
        if known.ends > frame {
            // Counters of frames before the pause.
            return;
        }
        let hidden = Hidden::of(counts);
        if hidden.pays() {
            (known.losses, known.next) = (0, FIRST_PAUSE);
            return;
        }
        known.losses += 1;
        if known.losses < TRIAL {
            return;
        }
        known.losses = 0;
        known.ends = frame + known.next;
        debug!(
            "occlusion pauses for {} frames in the view \"{}\" of {}: it hides {} of {} instances, about {} triangles",
            known.next,
            view.display_name(),
            view.key.main_entity.id(),
            hidden.instances,
            hidden.in_frustum,
            hidden.triangles,
        );
        known.next = (2 * known.next).min(LONGEST_PAUSE);
    }
}

/// What a view hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hidden {
    in_frustum: u64,
    instances: u64,
    /// An estimate: each has as many triangles as a visible one, on average.
    triangles: u64,
}

impl Hidden {
    fn of(counts: &FrameCounts) -> Self {
        let rows = counts.rows.iter();
        let visible = rows.filter(|row| row.list == DrawList::Visible);
        let (mut kept, mut drawn, mut largest) = (0, 0, 0);
        for row in visible {
            let triangles = u64::from(row.element_count / 3);
            kept += u64::from(row.visible);
            drawn += u64::from(row.visible) * triangles;
            largest = triangles.max(largest);
        }
        let instances = counts.in_frustum.saturating_sub(kept);
        let each = drawn.checked_div(kept).unwrap_or(largest);
        Self {
            in_frustum: counts.in_frustum,
            instances,
            triangles: instances * each,
        }
    }

    fn pays(self) -> bool {
        self.instances * MIN_SHARE >= self.in_frustum && self.triangles >= MIN_TRIANGLES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cull::RowCount;

    /// Counters of instances of 100 triangles.
    fn counts(in_frustum: u64, visible: u32) -> FrameCounts {
        let row = |list, visible| RowCount {
            request: 1,
            view: 0,
            level: 0,
            tested: 0,
            visible,
            list,
            element_count: 300,
        };
        FrameCounts {
            in_frustum,
            rows: vec![row(DrawList::Early, 7), row(DrawList::Visible, visible)],
            ..FrameCounts::default()
        }
    }

    #[test]
    fn hiding_pays_if_much_is_hidden() {
        let pays = |in_frustum, visible| Hidden::of(&counts(in_frustum, visible)).pays();
        assert!(pays(10_000, 8000));
        // An eighth, and 131,072 triangles.
        assert!(pays(16_000, 14_000));
        assert!(!pays(16_000, 14_001));
        assert!(pays(2000, 689));
        assert!(!pays(2000, 690));
        assert!(!pays(0, 0));
        // Nothing is visible: each instance has what the largest row has.
        assert!(pays(1311, 0));
        assert!(!pays(1310, 0));
    }

    #[test]
    fn a_view_pauses_while_hiding_does_not_pay() {
        let mut pauses = OcclusionPauses::default();
        let [idle, busy] = [FrameView::test(1), FrameView::test(2)];
        let (little, much) = (counts(16_000, 15_999), counts(16_000, 100));
        let mut frames = Vec::new();
        for frame in 0..1000 {
            pauses.start_frame([idle.key, busy.key].into_iter());
            let paused = pauses.pauses(&idle.key);
            frames.push(paused);
            assert!(!pauses.pauses(&busy.key));
            if !paused {
                // Something else hides for a moment.
                let is_much = frame == 3;
                pauses.learn(&idle, if is_much { &much } else { &little });
            }
            pauses.learn(&busy, &much);
        }
        let runs: Vec<_> = frames.chunk_by(|a, b| a == b).map(<[bool]>::len).collect();
        assert_eq!(runs[..7], [4 + 6, 60 - 1, 6, 120 - 1, 6, 240 - 1, 6]);
        assert_eq!(runs[7], 240 - 1);
    }

    #[test]
    fn the_next_pause_is_short_after_hiding_has_paid() {
        let mut pauses = OcclusionPauses::default();
        let view = FrameView::test(1);
        let (little, much) = (counts(16_000, 15_999), counts(16_000, 100));
        let run = |pauses: &mut OcclusionPauses, counts: &FrameCounts, frames: u32| {
            let mut paused = 0;
            for _ in 0..frames {
                pauses.start_frame([view.key].into_iter());
                paused += u32::from(pauses.pauses(&view.key));
                // Counters from before a pause say nothing.
                pauses.learn(&view, counts);
            }
            paused
        };
        // Three trials, and pauses of 60, 120 and 240 frames, the last one not at its end.
        assert_eq!(run(&mut pauses, &little, 200), 200 - 3 * 6);
        assert_eq!(run(&mut pauses, &much, 300), 196 + 240 - 1 - 200);
        assert_eq!(run(&mut pauses, &little, 5), 0);
        // The first pause again, and the second one as far as it goes.
        assert_eq!(run(&mut pauses, &little, 100), 100 - 1 - 6);
    }

    #[test]
    fn views_that_are_gone_or_may_not_pause_are_forgotten() {
        let mut pauses = OcclusionPauses::default();
        let little = counts(16_000, 15_999);
        for number in 1..100 {
            pauses.start_frame([FrameView::test(number).key].into_iter());
            pauses.learn(&FrameView::test(number), &little);
            pauses.learn(&FrameView::test(number + 1), &little);
            assert_eq!(pauses.views.len(), 1);
        }
    }
}
