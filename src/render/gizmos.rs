//! Lines around sets, their blocks, and frozen frusta (feature `gizmos`).

use super::{
    bounds::SetSphere,
    components::{FreezeCulling, GpuInstances},
    settings::GpuCullingSystems,
};
use crate::instance::{InstanceSet, PackedInstance};
use bevy::{
    camera::primitives::{Aabb, Frustum},
    gizmos::{AppGizmoBuilder, config::GizmoConfigGroup, gizmos::Gizmos},
    platform::collections::HashMap,
    prelude::*,
    shape::Aabb3d,
};

/// Number of instances that the GPU accepts or rejects at once.
const BLOCK: usize = 1024;

/// Draws the bounds of entities with [`ShowCullingGizmos`], and the frustum of each camera with
/// [`FreezeCulling`] (feature `gizmos`). Add it after Bevy's `DefaultPlugins`. Colors and widths of
/// the lines are in the [`CullingGizmoConfigGroup`].
///
/// ```no_run
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// App::new()
///     .add_plugins((DefaultPlugins, GpuCullingPlugin::default(), CullingGizmosPlugin))
///     .run();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CullingGizmosPlugin;

/// The gizmos of [`CullingGizmosPlugin`], in Bevy's `GizmoConfigStore`.
#[derive(Reflect, GizmoConfigGroup, Clone, Debug)]
#[reflect(Clone, Default)]
pub struct CullingGizmoConfigGroup {
    /// The color of the box around a set.
    pub set_color: Color,
    /// The color of the boxes around its blocks.
    pub block_color: Color,
    /// The color of frozen frusta.
    pub frustum_color: Color,
}

impl Default for CullingGizmoConfigGroup {
    fn default() -> Self {
        Self {
            set_color: Color::srgb(0.2, 0.9, 1.0),
            block_color: Color::srgb(0.4, 0.9, 0.3),
            frustum_color: Color::srgb(1.0, 0.7, 0.1),
        }
    }
}

/// On an entity with [`GpuInstances`]: [`CullingGizmosPlugin`] draws the box around all instances,
/// and one around each block of 1,024 consecutive instances. The GPU accepts or rejects blocks at
/// once if it can, so small boxes that do not overlap are fast: see
/// [`InstanceSet::sorted`].
///
/// Boxes of blocks are made from the instances on the CPU, again after each edit. Sets that only
/// the GPU has show none. A box lies around the spheres by which its instances are tested.
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq, Eq)]
#[reflect(Component, Default, Clone, Debug, PartialEq)]
pub struct ShowCullingGizmos {
    /// Number of blocks that are drawn at most, the first of the set. 0 draws the box around the
    /// set alone.
    pub max_blocks: usize,
}

impl Default for ShowCullingGizmos {
    /// Up to 1,024 blocks, which are about a million instances.
    fn default() -> Self {
        Self { max_blocks: 1024 }
    }
}

impl Plugin for CullingGizmosPlugin {
    fn build(&self, app: &mut App) {
        app.register_type::<ShowCullingGizmos>()
            .init_gizmo_group::<CullingGizmoConfigGroup>()
            .add_systems(
                PostUpdate,
                (
                    draw_sets.run_if(resource_exists::<Assets<InstanceSet>>),
                    draw_frozen_frusta,
                )
                    .after(GpuCullingSystems::UpdateBounds)
                    .after(TransformSystems::Propagate),
            );
    }
}

/// The blocks of a set.
#[derive(Default)]
struct Blocks {
    lineage: u64,
    revision: u64,
    all: Vec<Block>,
}

/// The positions of a block, and the largest scale.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    min: Vec3,
    max: Vec3,
    scale: f32,
}

impl Block {
    /// The block of these instances; `None` if all are hidden. `largest` is the largest scale of an
    /// instance of the block.
    fn around(instances: &[PackedInstance], largest: impl Fn(usize) -> f32) -> Option<Self> {
        let shown = instances
            .iter()
            .zip(0..)
            .filter(|(one, _)| !one.is_hidden());
        let block = |(one, at): (&PackedInstance, usize)| Self {
            min: one.position(),
            max: one.position(),
            scale: largest(at),
        };
        shown.map(block).reduce(|one, other| Self {
            min: one.min.min(other.min),
            max: one.max.max(other.max),
            scale: one.scale.max(other.scale),
        })
    }

    /// The box that reaches `reach` times the scale beyond the positions.
    fn to_box(self, reach: f32) -> Aabb3d {
        let reach = Vec3::splat(reach * self.scale);
        Aabb3d {
            min: (self.min - reach).into(),
            max: (self.max + reach).into(),
        }
    }
}

/// The blocks of a set, in order.
fn blocks_of(set: &InstanceSet) -> Vec<Block> {
    let blocks = set.packed().chunks(BLOCK).enumerate();
    let block = |(index, instances): (usize, &[PackedInstance])| {
        Block::around(instances, |at| {
            let at = (index * BLOCK + at) as u32;
            set.get(at).map_or(1.0, |one| one.scale.max_element())
        })
    };
    blocks.filter_map(block).collect()
}

/// The entities whose bounds are drawn.
type ShownSets<'w, 's> = Query<
    'w,
    's,
    (
        &'static GpuInstances,
        &'static ShowCullingGizmos,
        &'static GlobalTransform,
        &'static Aabb,
        Option<&'static SetSphere>,
        &'static InheritedVisibility,
    ),
>;

fn draw_sets(
    shown: ShownSets,
    sets: Res<Assets<InstanceSet>>,
    mut known: Local<HashMap<AssetId<InstanceSet>, Blocks>>,
    mut gizmos: Gizmos<CullingGizmoConfigGroup>,
) {
    if shown.is_empty() {
        known.clear();
        return;
    }
    for (instances, gizmo, at, bounds, sphere, visibility) in &shown {
        if !visibility.get() {
            continue;
        }
        let color = gizmos.config_ext.set_color;
        gizmos.aabb_3d(Aabb3d::new(bounds.center, bounds.half_extents), *at, color);
        let (Some(set), Some(sphere)) = (sets.get(instances.id()), sphere) else {
            continue;
        };
        if gizmo.max_blocks == 0 || set.is_released() {
            continue;
        }
        let blocks = known.entry(instances.id()).or_default();
        if (blocks.lineage, blocks.revision) != (set.lineage(), set.revision()) {
            *blocks = Blocks {
                lineage: set.lineage(),
                revision: set.revision(),
                all: blocks_of(set),
            };
        }
        let reach = sphere.all.center.length() + sphere.all.radius;
        let color = gizmos.config_ext.block_color;
        for block in blocks.all.iter().take(gizmo.max_blocks) {
            gizmos.aabb_3d(block.to_box(reach), *at, color);
        }
    }
}

fn draw_frozen_frusta(cameras: Query<&FreezeCulling>, mut gizmos: Gizmos<CullingGizmoConfigGroup>) {
    for freeze in &cameras {
        if let Some(frustum) = &freeze.frustum {
            draw_frustum(frustum, &mut gizmos);
        }
    }
}

/// The twelve edges of a frustum.
fn draw_frustum(frustum: &Frustum, gizmos: &mut Gizmos<CullingGizmoConfigGroup>) {
    let Some(corners) = frustum.corners() else {
        return;
    };
    let color = gizmos.config_ext.frustum_color;
    let (near, far) = corners.split_at(4);
    gizmos.lineloop(near.iter().copied(), color);
    gizmos.lineloop(far.iter().copied(), color);
    for (near, far) in near.iter().zip(far) {
        gizmos.line(*near, *far, color);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_surround_their_instances() -> Result<(), crate::instance::InstanceError> {
        let scaled = |i: usize| {
            Transform::from_xyz(i as f32, 0.0, 1.0).with_scale(Vec3::new(
                0.5,
                1.0 + (i % 7) as f32,
                1.0,
            ))
        };
        let mut set = InstanceSet::from_transforms((0..2500).map(scaled))?;
        set.hide(2499)?;
        let blocks = blocks_of(&set);
        let ends: Vec<_> = blocks
            .iter()
            .map(|block| (block.min.x, block.max.x))
            .collect();
        assert_eq!(ends, [(0.0, 1023.0), (1024.0, 2047.0), (2048.0, 2498.0)]);
        assert_eq!(blocks[1].scale, 7.0);
        let around = blocks[1].to_box(0.5);
        assert_eq!((around.min.x, around.max.x), (1020.5, 2050.5));
        for i in 2048..2499 {
            set.hide(i)?;
        }
        assert_eq!(blocks_of(&set).len(), 2);
        Ok(())
    }
}
