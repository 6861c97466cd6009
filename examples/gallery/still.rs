//! Still versions of examples, to compare with.

use super::{Still, gpu_written::Count};
use bevy::prelude::*;
use bevy_gpu_culling::{prelude::*, render::ViewReport};

/// `gpu_written`: the same orbs at time 0, in a set that is uploaded once.
pub const ORBS: Still = Still {
    change: |app| {
        app.add_systems(PostStartup, upload);
    },
    is_ready: |_| true,
};

fn upload(
    count: Res<Count>,
    mut set: Single<&mut GpuInstances>,
    mut sets: ResMut<Assets<InstanceSet>>,
) -> Result {
    let orbs = (0..count.0).map(|orb| orb_at_rest(orb, count.0));
    set.0 = sets.add(InstanceSet::from_transforms(orbs)?);
    Ok(())
}

/// The transform that `swirl` of `vortex.wesl` gives an orb at time 0.
fn orb_at_rest(orb: u32, count: u32) -> Transform {
    let random = |use_of_it: u32| {
        let state = (orb.wrapping_mul(8).wrapping_add(use_of_it))
            .wrapping_mul(747_796_405)
            .wrapping_add(2_891_336_453);
        let word = ((state >> ((state >> 28) + 4)) ^ state).wrapping_mul(277_803_737);
        (((word >> 22) ^ word) >> 8) as f32 / 16_777_216.0
    };
    let height = orb as f32 / count as f32;
    let radius = (1.0 + 30.0 * height.powf(1.6)) * (0.85 + 0.3 * random(0));
    let angle = core::f32::consts::TAU * random(1);
    let place = Vec3::new(
        radius * angle.cos() + (4.0 * height).sin() * 3.0 * height,
        40.0 * (height - 0.5) + 2.0 * random(2),
        radius * angle.sin() + (3.0 * height).cos() * 3.0 * height,
    );
    Transform::from_translation(place)
        .with_rotation(Quat::from_rotation_y(-angle))
        .with_scale(Vec3::splat(0.5 + random(3)))
}

/// Where the camera of `occlusion` rises to.
const ABOVE: Vec3 = Vec3::new(90.0, 130.0, 60.0);

/// `occlusion`: culling is frozen, and the camera is above. What was hidden is not there.
pub const FROM_ABOVE: Still = Still {
    change: |app| {
        app.add_systems(Update, rise_when_seen);
    },
    is_ready: |world| {
        let mut frozen = world.query_filtered::<(), With<FreezeCulling>>();
        frozen.iter(world).next().is_some()
    },
};

/// Once the camera has seen what is hidden, it freezes and rises.
fn rise_when_seen(
    mut commands: Commands,
    report: Res<CullingReport>,
    camera: Single<(Entity, &mut Transform, Has<FreezeCulling>), With<Camera>>,
) {
    let (camera, mut place, is_frozen) = camera.into_inner();
    let is_seen = |view: &ViewReport| view.occlusion.is_some_and(|lists| lists.late == 0);
    if is_frozen {
        *place = Transform::from_translation(ABOVE).looking_at(Vec3::new(0.0, 0.0, -60.0), Vec3::Y);
    } else if report.views.iter().any(is_seen) {
        commands.entity(camera).insert(FreezeCulling::default());
    }
}
