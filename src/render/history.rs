//! The views of recent frames: counters come back some frames late, and name views by their index in a frame.

use super::views::ViewKind;
use bevy::render::view::RetainedViewEntity;
use std::{collections::VecDeque, sync::Arc};

/// Name and kind of a view of a frame.
pub(super) type FrameView = (RetainedViewEntity, ViewKind, String);

/// Frames that are remembered: more than can be on their way.
const FRAMES: usize = 64;

/// The views of recent frames, by [`Culler::frame`](crate::cull::Culler::frame).
#[derive(Default)]
pub(super) struct ViewHistory {
    frames: VecDeque<(u64, Arc<[FrameView]>)>,
}

impl ViewHistory {
    /// Remembers the views of a frame.
    pub fn push(&mut self, frame: u64, views: &[FrameView]) {
        let last = self.frames.back().map(|(_, last)| last);
        let views = match last.filter(|last| ***last == *views) {
            Some(last) => last.clone(),
            None => views.into(),
        };
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((frame, views));
    }

    /// The views of a frame, if it is remembered.
    pub fn views(&self, frame: u64) -> Option<&[FrameView]> {
        let found = self
            .frames
            .iter()
            .rev()
            .find(|(known, _)| *known == frame)?;
        Some(&found.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bevy::prelude::Entity;

    fn view(index: u32) -> FrameView {
        let entity = Entity::from_raw_u32(index).unwrap_or(Entity::PLACEHOLDER);
        let key = RetainedViewEntity::new(entity.into(), None, 0);
        (key, ViewKind::Camera, String::new())
    }

    #[test]
    fn each_frame_has_its_own_views() {
        let mut history = ViewHistory::default();
        history.push(7, &[view(1), view(2)]);
        history.push(8, &[view(1), view(2)]);
        history.push(9, &[view(2)]);
        assert_eq!(history.views(8).map(<[_]>::len), Some(2));
        assert_eq!(history.views(9), Some(&[view(2)][..]));
        assert_eq!(history.views(10), None);
        for frame in 10..200 {
            history.push(frame, &[]);
        }
        assert_eq!(history.views(9), None);
        assert_eq!(history.frames.len(), FRAMES);
    }
}
