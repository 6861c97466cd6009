//! The views of recent frames.
//!
//! Counters come back some frames late, and name views by their index in their own frame.

use super::views::FrameView;
use std::{collections::VecDeque, sync::Arc};

/// Number of frames that are remembered: more than can be in flight.
const FRAMES: usize = 64;

/// A frame that is remembered.
struct Remembered {
    /// [`Culler::frame`](crate::cull::Culler::frame).
    frame: u64,
    views: Arc<[FrameView]>,
}

/// The views of recent frames.
#[derive(Default)]
pub(super) struct ViewHistory {
    /// The oldest first.
    frames: VecDeque<Remembered>,
}

impl ViewHistory {
    /// Remembers the views of a frame.
    pub fn push(&mut self, frame: u64, views: &[FrameView]) {
        let last = self.frames.back();
        let views = match last.filter(|last| *last.views == *views) {
            Some(last) => last.views.clone(),
            None => views.into(),
        };
        if self.frames.len() == FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(Remembered { frame, views });
    }

    /// The views of a frame, if it is remembered.
    pub fn views(&self, frame: u64) -> Option<&[FrameView]> {
        let mut latest = self.frames.iter().rev();
        let found = latest.find(|known| known.frame == frame)?;
        Some(&found.views)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::views::ViewKind;
    use bevy::{prelude::Entity, render::view::RetainedViewEntity};

    fn view(index: u32) -> FrameView {
        let entity = Entity::from_raw_u32(index).unwrap_or(Entity::PLACEHOLDER);
        FrameView {
            key: RetainedViewEntity::new(entity.into(), None, 0),
            kind: ViewKind::Camera,
            name: String::new(),
            fades: true,
        }
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
