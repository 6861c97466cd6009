//! The draws of a frame that are expanded.

use super::pass::UniformJob;
use crate::render::gpu::OFFSET_ALIGNMENT;
use bevy::{platform::collections::HashMap, render::view::RetainedViewEntity};

/// Distance of the jobs' uniforms in bytes.
pub(super) const JOB_STRIDE: usize =
    size_of::<UniformJob>().next_multiple_of(OFFSET_ALIGNMENT as usize);

/// An entity in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DrawKey {
    /// The key of the entity's request, which is the entity's bits.
    pub request: u64,
    pub view: RetainedViewEntity,
}

/// The draw of one region of an entity in one view.
pub(super) struct ExpandedDraw {
    pub job: UniformJob,
    pub batch: usize,
    /// Index of the region's draw slot.
    pub slot: u32,
    pub key: DrawKey,
}

/// The draws of a frame, in the order of their commands.
#[derive(Default)]
pub(super) struct ExpandedDraws {
    pub all: Vec<ExpandedDraw>,
    /// Indices of the draws of an entity in a view.
    by_key: HashMap<DrawKey, Vec<usize>>,
}

impl ExpandedDraws {
    pub fn clear(&mut self) {
        self.all.clear();
        self.by_key.clear();
    }

    /// Adds a draw, whose job gets the number of its command.
    pub fn push(&mut self, mut draw: ExpandedDraw) {
        let index = self.all.len();
        draw.job.draw = index as u32;
        self.by_key.entry(draw.key).or_default().push(index);
        self.all.push(draw);
    }

    /// Indices of the draws of an entity in a view.
    pub fn of(&self, key: &DrawKey) -> &[usize] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }

    /// Every entity in every view, with the number of its uniforms that there is room for.
    pub fn rooms(&self) -> impl Iterator<Item = (DrawKey, u32)> {
        self.by_key.iter().map(|(key, draws)| {
            let rooms = draws.iter().map(|draw| self.all[*draw].job.room);
            (*key, rooms.sum())
        })
    }

    /// The jobs as the pass binds them.
    pub fn job_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.all.len() * JOB_STRIDE];
        for (draw, place) in self.all.iter().zip(bytes.chunks_exact_mut(JOB_STRIDE)) {
            place[..size_of::<UniformJob>()].copy_from_slice(bytemuck::bytes_of(&draw.job));
        }
        bytes
    }
}
