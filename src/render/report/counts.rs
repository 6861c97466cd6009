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

impl CullingReport {
    /// Takes the counters of an earlier frame, which had this scene.
    pub(super) fn take_counts(
        &mut self,
        counts: &FrameCounts,
        late: &LateCounts,
        scene: &FrameScene,
    ) {
        let views = &*scene.views;
        self.overflow = counts.overflow;
        self.instances = 0;
        /// Instances of a view.
        #[derive(Clone, Default)]
        struct Sum {
            tested: u64,
            visible: u64,
            occlusion: Option<OcclusionReport>,
            levels: Vec<LevelReport>,
        }
        // `None` for a view that tested no set. A view that comes once more, for sets without
        // frustum culling, is the same view.
        let mut sums: Vec<Option<Sum>> = vec![None; views.len()];
        // A set's instances count once, however many views test them: in the rows of the first.
        let mut first_view: HashMap<u64, u32> = HashMap::new();
        // Most rows of a set follow each other.
        let mut last = None;
        for row in &counts.rows {
            let first = match last {
                Some((request, first)) if request == row.request => first,
                _ => *first_view.entry(row.request).or_insert(row.view),
            };
            last = Some((row.request, first));
            if first == row.view {
                self.instances += u64::from(row.tested);
            }
        }
        // Counters of a view that no longer hides are stale.
        let early = counts.rows.iter().filter(|row| row.list == DrawList::Early);
        let hiding: HashSet<u32> = early.map(|row| row.view).collect();
        let mut late_rows = late.rows(views);
        late_rows.retain(|row| hiding.contains(&row.view));
        let mut of_sets = SetSums::new(self.sets.len());
        for row in counts.rows.iter().chain(&late_rows) {
            if let Some(view) = view_at(views, row.view) {
                of_sets.add(row, view.kind);
                let sum = sums[row.view as usize % views.len()].get_or_insert_default();
                sum.tested += u64::from(row.tested);
                let kept = u64::from(row.visible);
                match row.list {
                    DrawList::Early => sum.occlusion.get_or_insert_default().early += kept,
                    DrawList::Late => sum.occlusion.get_or_insert_default().late += kept,
                    DrawList::Kept | DrawList::Visible => sum.visible += kept,
                }
                if [DrawList::Early, DrawList::Late].contains(&row.list) {
                    continue;
                }
                let level = row.level as usize;
                if sum.levels.len() <= level {
                    sum.levels.resize(level + 1, LevelReport::default());
                }
                sum.levels[level].visible += u64::from(row.visible);
                sum.levels[level].triangles +=
                    u64::from(row.visible) * u64::from(row.element_count / 3);
            }
        }
        self.sets = of_sets.finish(scene);
        self.views.clear();
        for (view, sum) in views.iter().zip(sums) {
            let Some(Sum {
                tested,
                visible,
                occlusion,
                levels,
            }) = sum
            else {
                continue;
            };
            let occlusion = occlusion.map(|lists| OcclusionReport {
                early: lists.early,
                late: lists.late,
                ..late.hidden(view)
            });
            self.views.push(ViewReport {
                entity: view.key.main_entity,
                kind: view.kind,
                camera: view.camera(),
                name: view.display_name(),
                tested,
                visible,
                occlusion,
                levels,
            });
        }
    }

    /// Takes the counters of meshlets of an earlier frame with these views.
    pub(super) fn take_meshlet_counts(&mut self, counts: &MeshletCounts, views: &[FrameView]) {
        self.clear_meshlets();
        // A view that hides draws what is early and late, unless it draws what is visible.
        let visible = counts
            .rows
            .iter()
            .filter(|row| row.list == DrawList::Visible);
        let visible: HashSet<u32> = visible.map(|row| row.view).collect();
        for row in &counts.rows {
            let is_twice = [DrawList::Early, DrawList::Late].contains(&row.list);
            if is_twice && visible.contains(&row.view) {
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
            sum.rows_drawn_whole += u64::from(row.whole);
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
    /// Takes the counters of an earlier frame with these views. `pauses` learns from them.
    pub fn take(&mut self, counts: FrameCounts, views: &[FrameView], pauses: &mut OcclusionPauses) {
        let view = counts.rows.first().and_then(|row| view_at(views, row.view));
        if let Some(view) = view {
            pauses.learn(view, &counts);
            self.0.insert(view.key, counts);
        }
    }

    /// No view hides instances any more.
    pub fn clear(&mut self) {
        self.0.clear();
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

    /// The rows of these views, with their indices.
    fn rows(&self, views: &[FrameView]) -> Vec<RowCount> {
        let all = (0..).zip(views);
        let late = all.filter_map(|(view, of)| Some((view, self.0.get(&of.key)?)));
        late.flat_map(|(view, counts)| counts.rows.iter().map(move |row| RowCount { view, ..*row }))
            .collect()
    }
}
