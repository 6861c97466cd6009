//! What a slot was made from.

use super::info::SlotInfo;
use crate::render::entity_uniforms::EntityUniform;
use bevy::{
    math::{Affine3, Vec4},
    pbr::MeshInputUniform,
    prelude::*,
    render::sync_world::MainEntity,
};
use bytemuck::bytes_of;

/// Rows of a transform.
pub(super) type Rows = [Vec4; 3];

/// What a slot was made from.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub entity: MainEntity,
    /// The last frame that had it.
    pub frame: u64,
    /// `None` if Bevy builds mesh uniforms on the CPU: then only whole uniforms could be compared.
    pub input: Option<MeshInputUniform>,
    pub info: SlotInfo,
    /// The entity's transform, for the motion vectors of the next frame.
    pub transform: Rows,
    /// The set's offset.
    pub offset: Option<Affine3>,
    /// Transform and offset in the previous frame.
    pub was_at: (Rows, Option<Affine3>),
    /// Whether the previous frame had the same transform and offset.
    pub rests: bool,
}

impl Slot {
    /// A slot that no frame has had.
    pub fn new() -> Self {
        Self {
            entity: Entity::PLACEHOLDER.into(),
            frame: 0,
            input: None,
            info: SlotInfo::default(),
            transform: [Vec4::ZERO; 3],
            offset: None,
            was_at: ([Vec4::ZERO; 3], None),
            rests: false,
        }
    }

    /// Whether the slot of the next frame is the same, except for its [`SlotInfo`].
    pub fn stays(&self, entity: MainEntity, data: &EntityUniform, offset: Option<Affine3>) -> bool {
        let (Some(known), EntityUniform::Input(input)) = (&self.input, data) else {
            return false;
        };
        self.rests
            && self.entity == entity
            && self.offset == offset
            && bytes_of(known) == bytes_of(input)
    }
}
