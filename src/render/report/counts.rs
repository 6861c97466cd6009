//! From the counters of a frame to its report.

use super::{
    content::{CullingReport, LevelReport, MeshletReport, OcclusionReport, ViewReport},
    sets::SetSums,
};
use crate::{
    cull::{DrawList, FrameCounts, RowCount, meshlets::MeshletCounts},
    render::{
        history::FrameScene,
        occlusion::OcclusionPauses,
        views::{FrameView, ViewKind, view_at},
    },
};
use bevy::{
    platform::collections::{HashMap, HashSet},
    render::view::RetainedViewEntity,
};

/// The sums of a frame's rows. Their memory is used for the next one.
#[derive(Default)]
pub(in crate::render) struct CountSums {
    views: Vec<ViewSum>,
    /// The first view of each request that tests it.
    first_view: HashMap<u64, u32>,
    /// The views that draw what is visible of meshlets.
    meshlet_views: HashSet<u32>,
    sets: SetSums,
}

impl CountSums {
    /// Adds a row of a frame with these views. A view that comes once more, for sets without
    /// frustum culling, is the same view.
    fn add(&mut self, row: &RowCount, views: &[FrameView]) {
        if let Some(view) = view_at(views, row.view) {
            self.sets.add(row, view.kind);
            self.views[row.view as usize % views.len()].add(row);
        }
    }
}

/// Instances of a view.
#[derive(Default)]
struct ViewSum {
    /// Whether the view tested a set.
    tests: bool,
    /// Whether some rows are drawn early.
    hides: bool,
    tested: u64,
    visible: u64,
    early: u64,
    late: u64,
    levels: Vec<LevelReport>,
}

impl ViewSum {
    /// No rows yet.
    fn clear(&mut self) {
        self.levels.clear();
        *self = Self {
            levels: core::mem::take(&mut self.levels),
            ..Self::default()
        };
    }

    fn add(&mut self, row: &RowCount) {
        self.tests = true;
        self.tested += u64::from(row.tested);
        let kept = u64::from(row.visible);
        match row.list {
            DrawList::Early => self.early += kept,
            DrawList::Late => self.late += kept,
            DrawList::Kept | DrawList::Visible => {
                self.visible += kept;
                let level = row.level as usize;
                if self.levels.len() <= level {
                    self.levels.resize(level + 1, LevelReport::default());
                }
                self.levels[level].visible += kept;
                self.levels[level].triangles += kept * u64::from(row.element_count / 3);
            }
        }
    }
}

impl ViewReport {
    /// The report of a view, in the memory of another's.
    fn replace(&mut self, view: &FrameView, sum: &ViewSum, late: &LateCounts) {
        let mut name = core::mem::take(&mut self.name);
        if name != view.display_name() {
            view.display_name().clone_into(&mut name);
        }
        let mut levels = core::mem::take(&mut self.levels);
        levels.clone_from(&sum.levels);
        *self = Self {
            entity: view.key.main_entity,
            kind: view.kind,
            camera: view.camera(),
            name,
            tested: sum.tested,
            visible: sum.visible,
            occlusion: sum.hides.then(|| OcclusionReport {
                early: sum.early,
                late: sum.late,
                ..late.hidden(view)
            }),
            levels,
        };
    }

    /// A report without counters.
    fn of(view: &FrameView) -> Self {
        Self {
            entity: view.key.main_entity,
            kind: view.kind,
            camera: None,
            name: String::new(),
            tested: 0,
            visible: 0,
            occlusion: None,
            levels: Vec::new(),
        }
    }
}

impl CullingReport {
    /// Takes the counters of an earlier frame, which had this scene. The lists of the report may
    /// have any content before.
    pub(super) fn take_counts(
        &mut self,
        counts: &FrameCounts,
        late: &LateCounts,
        scene: &FrameScene,
        sums: &mut CountSums,
    ) {
        let views = &*scene.views;
        self.overflow = counts.overflow;
        self.instances = 0;
        // A set's instances count once, however many views test them: in the rows of the first.
        sums.first_view.clear();
        // Most rows of a set follow each other.
        let mut last = None;
        for row in &counts.rows {
            let first = match last {
                Some((request, first)) if request == row.request => first,
                _ => *sums.first_view.entry(row.request).or_insert(row.view),
            };
            last = Some((row.request, first));
            if first == row.view {
                self.instances += u64::from(row.tested);
            }
        }
        sums.views.iter_mut().for_each(ViewSum::clear);
        sums.views.resize_with(views.len(), ViewSum::default);
        for row in counts.rows.iter().filter(|row| row.list == DrawList::Early) {
            if let Some(view) = sums.views.get_mut(row.view as usize) {
                view.hides = true;
            }
        }
        sums.sets.start(core::mem::take(&mut self.sets));
        for row in &counts.rows {
            sums.add(row, views);
        }
        for (index, view) in views.iter().enumerate() {
            // Counters of a view that no longer hides are stale.
            if sums.views[index].hides {
                for row in late.rows(index as u32, view) {
                    sums.add(&row, views);
                }
            }
        }
        self.sets = sums.sets.finish(scene);
        let mut len = 0;
        let tested = views.iter().zip(&sums.views).filter(|(_, sum)| sum.tests);
        for (view, sum) in tested {
            if len == self.views.len() {
                self.views.push(ViewReport::of(view));
            }
            self.views[len].replace(view, sum, late);
            len += 1;
        }
        self.views.truncate(len);
    }

    /// Takes the counters of meshlets of an earlier frame with these views.
    pub(super) fn take_meshlet_counts(
        &mut self,
        counts: &MeshletCounts,
        views: &[FrameView],
        sums: &mut CountSums,
    ) {
        self.clear_meshlets();
        // A view that hides draws what is early and late, unless it draws what is visible.
        let visible = counts
            .rows
            .iter()
            .filter(|row| row.list == DrawList::Visible);
        sums.meshlet_views.clear();
        sums.meshlet_views.extend(visible.map(|row| row.view));
        for row in &counts.rows {
            let is_twice = [DrawList::Early, DrawList::Late].contains(&row.list);
            if is_twice && sums.meshlet_views.contains(&row.view) {
                continue;
            }
            let Some(view) = view_at(views, row.view) else {
                continue;
            };
            let sum = if view.kind == ViewKind::Camera {
                &mut self.meshlets
            } else {
                &mut self.shadow_meshlets
            };
            sum.tested += row.tested;
            sum.culled_by_frustum += row.outside;
            sum.culled_by_cone += row.facing_away;
            sum.culled_by_occlusion += row.hidden;
            sum.drawn += row.visible;
            sum.triangles += row.triangles;
            sum.whole_triangles += row.whole_triangles;
            sum.rows_drawn_whole += u64::from(row.is_whole);
        }
    }

    pub(super) fn clear_meshlets(&mut self) {
        self.meshlets = MeshletReport::default();
        self.shadow_meshlets = MeshletReport::default();
    }
}

/// The newest counters of the late lists of each view: they arrive by themselves.
#[derive(Default)]
pub(in crate::render) struct LateCounts(HashMap<RetainedViewEntity, FrameCounts>);

impl LateCounts {
    /// Takes the counters of an earlier frame with these views, and gives older ones for them.
    /// `pauses` learns from them.
    pub fn take(
        &mut self,
        counts: &mut FrameCounts,
        views: &[FrameView],
        pauses: &mut OcclusionPauses,
    ) {
        let view = counts.rows.first().and_then(|row| view_at(views, row.view));
        if let Some(view) = view {
            pauses.learn(view, counts);
            let known = self.0.entry(view.key).or_default();
            core::mem::swap(known, counts);
        }
    }

    /// Forgets the views for which `hides` is false.
    pub fn keep(&mut self, hides: impl Fn(&RetainedViewEntity) -> bool) {
        self.0.retain(|view, _| hides(view));
    }

    /// Whether the counters of a view that hides are older than these, of its frame.
    pub fn is_behind(&self, counts: &FrameCounts, views: &[FrameView]) -> bool {
        let hides = |key: &RetainedViewEntity| {
            let mut early = counts.rows.iter().filter(|row| row.list == DrawList::Early);
            early.any(|row| view_at(views, row.view).is_some_and(|view| view.key == *key))
        };
        let mut old = self.0.iter().filter(|(_, late)| late.frame < counts.frame);
        old.any(|(key, _)| hides(key))
    }

    /// What a view hides of what its frustum keeps. The lists are 0.
    fn hidden(&self, view: &FrameView) -> OcclusionReport {
        let Some(counts) = self.0.get(&view.key) else {
            return OcclusionReport::default();
        };
        let rows = counts.rows.iter();
        let visible = rows.filter(|row| row.list == DrawList::Visible);
        let visible = visible.map(|row| u64::from(row.visible)).sum();
        OcclusionReport {
            hidden: counts.in_frustum.saturating_sub(visible),
            too_small: counts.too_small,
            ..OcclusionReport::default()
        }
    }

    /// The rows of a view, which is at this index in its frame.
    fn rows(&self, index: u32, view: &FrameView) -> impl Iterator<Item = RowCount> {
        let counts = self.0.get(&view.key).into_iter();
        let rows = counts.flat_map(|counts| &counts.rows);
        rows.map(move |row| RowCount {
            view: index,
            ..*row
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(frame: u64, view: u32, list: DrawList) -> FrameCounts {
        FrameCounts {
            frame,
            rows: vec![RowCount {
                request: 1,
                view,
                level: 0,
                tested: 9,
                visible: 4,
                list,
                element_count: 3,
            }],
            ..FrameCounts::default()
        }
    }

    #[test]
    fn late_counters_are_behind_if_a_view_that_hides_has_older_ones() {
        let views = [1, 2].map(FrameView::test);
        let (mut late, mut pauses) = (LateCounts::default(), OcclusionPauses::default());
        let early = |frame| counts(frame, 1, DrawList::Early);
        assert!(!late.is_behind(&early(4), &views), "there are none yet");
        late.take(&mut counts(4, 1, DrawList::Late), &views, &mut pauses);
        assert!(!late.is_behind(&early(4), &views));
        assert!(late.is_behind(&early(8), &views));
        let no_longer = counts(8, 1, DrawList::Kept);
        assert!(
            !late.is_behind(&no_longer, &views),
            "the view hides nothing"
        );
        let other = counts(8, 0, DrawList::Early);
        assert!(!late.is_behind(&other, &views), "another view hides");
        late.take(&mut counts(8, 1, DrawList::Late), &views, &mut pauses);
        assert!(!late.is_behind(&early(8), &views));
    }
}
