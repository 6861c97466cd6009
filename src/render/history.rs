//! What recent frames tested, as their counters name it.
//!
//! Counters come back some frames late. They name views by their index in their own frame, and
//! requests by their first entity.

use super::views::FrameView;
use bevy::render::sync_world::MainEntity;
use std::{collections::VecDeque, sync::Arc};

/// Number of frames that are remembered: more than can be in flight.
const FRAMES: usize = 64;

/// The views of a frame, and the entities that were tested as part of another's request.
#[derive(Clone)]
pub(super) struct FrameScene {
    pub views: Arc<[FrameView]>,
    /// Each with the first entity of its request.
    pub joined: Arc<[(MainEntity, MainEntity)]>,
}

impl Default for FrameScene {
    fn default() -> Self {
        Self {
            views: [].into(),
            joined: [].into(),
        }
    }
}

/// The scenes of recent frames.
#[derive(Default)]
pub(super) struct SceneHistory {
    /// The numbers of the frames ([`Culler::frame`](crate::cull::Culler::frame)) and their scenes,
    /// the oldest first.
    frames: VecDeque<(u64, FrameScene)>,
}

impl SceneHistory {
    /// Remembers a frame.
    pub fn push(&mut self, frame: u64, views: &[FrameView], joined: &[(MainEntity, MainEntity)]) {
        let mut scene = match self.frames.back() {
            Some((_, last)) => last.clone(),
            None => FrameScene::default(),
        };
        if *scene.views != *views {
            scene.views = views.into();
        }
        if *scene.joined != *joined {
            scene.joined = joined.into();
        }
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((frame, scene));
    }

    /// The scene of a frame, if it is remembered.
    pub fn scene(&self, frame: u64) -> Option<&FrameScene> {
        let mut latest = self.frames.iter().rev();
        let (_, scene) = latest.find(|(known, _)| *known == frame)?;
        Some(scene)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::prelude::Entity;

    #[test]
    fn each_frame_has_its_own_views_and_groups() {
        let main =
            |index| MainEntity::from(Entity::from_raw_u32(index).unwrap_or(Entity::PLACEHOLDER));
        let mut history = SceneHistory::default();
        let pair = (main(3), main(4));
        history.push(7, &[FrameView::test(1), FrameView::test(2)], &[]);
        history.push(8, &[FrameView::test(1), FrameView::test(2)], &[pair]);
        history.push(9, &[FrameView::test(2)], &[pair]);
        let lens = |history: &SceneHistory, frame| {
            let scene = history.scene(frame)?;
            Some((scene.views.len(), scene.joined.len()))
        };
        assert_eq!(lens(&history, 7), Some((2, 0)));
        assert_eq!(lens(&history, 8), Some((2, 1)));
        assert_eq!(
            history.scene(9).map(|scene| &*scene.views),
            Some(&[FrameView::test(2)][..])
        );
        assert_eq!(lens(&history, 9), Some((1, 1)));
        assert_eq!(lens(&history, 10), None);
        for frame in 10..200 {
            history.push(frame, &[], &[]);
        }
        assert_eq!(lens(&history, 9), None);
        assert_eq!(history.frames.len(), FRAMES);
    }
}
