//! How far from the origin culling stays right: the stages, which compute in `f32`, against an
//! oracle in `f64`.

use crate::common::{Scene, gpu, options, rng, run, triangles_of};
use bevy_gpu_culling::{
    cull::{CullFrame, CullRequest, CullView, Culler, CullingTier},
    instance::{InstanceSet, InstanceTransform},
};
use glam::{
    Affine3A, DAffine3, DQuat, DVec3, EulerRot, Mat4, Quat, Vec3, camera::rh::proj::directx,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Radius of an instance, in world units.
const RADIUS: f64 = 0.5;

const NEAR: f32 = 0.1;

/// Vertical angle of a view, and its width over its height.
const ANGLE: f32 = core::f32::consts::FRAC_PI_4;
const ASPECT: f32 = 16.0 / 9.0;

/// Which number is large.
#[derive(Clone, Copy, Debug)]
enum Far {
    /// The translations of the entity and of the camera.
    Entity,
    /// The positions in the set, and the camera's translation.
    Positions,
    /// The positions in the set. The entity's translation cancels them: the camera is at the origin.
    Canceled,
}

/// A set in a cube of side 100, and cameras in it.
struct World {
    set: InstanceSet,
    place: Affine3A,
    eyes: Vec<(Vec3, Quat)>,
}

impl World {
    fn new(rng: &mut ChaCha8Rng, far: Far, distance: f32) -> Self {
        let away = Vec3::new(0.6, -0.3, 0.74) * distance;
        let [of_place, of_positions, of_eyes] = match far {
            Far::Entity => [away, Vec3::ZERO, away],
            Far::Positions => [Vec3::ZERO, away, away],
            Far::Canceled => [-away, away, Vec3::ZERO],
        };
        let mut random =
            |size: f32| Vec3::from_array([(); 3].map(|()| rng.random_range(-size..=size)));
        let places = [(); 4096].map(|()| of_positions + random(50.0));
        let eyes = [(); 12].map(|()| {
            let turn = random(core::f32::consts::PI);
            let turn = Quat::from_euler(EulerRot::XYZ, turn.x, turn.y, turn.z);
            (of_eyes + random(30.0), turn)
        });
        let places = places.map(InstanceTransform::from);
        Self {
            set: InstanceSet::from_transforms(places).unwrap(),
            place: Affine3A::from_translation(of_place),
            eyes: eyes.to_vec(),
        }
    }

    /// The views as Bevy makes them of cameras.
    fn views(&self) -> Vec<CullView> {
        let clip_from_view = directx::perspective_infinite_reverse(ANGLE, ASPECT, NEAR);
        let view = |(eye, turn): &(Vec3, Quat)| {
            let view_from_world =
                Mat4::from(Affine3A::from_rotation_translation(*turn, *eye).inverse());
            CullView::from_clip_from_world(&(clip_from_view * view_from_world)).without_far()
        };
        self.eyes.iter().map(view).collect()
    }

    /// How far each instance's sphere reaches into a camera's view, in world units. Not above 0: the
    /// camera does not see it.
    fn reaches(&self, (eye, turn): (Vec3, Quat)) -> Vec<f64> {
        let view_from_world = DAffine3::from_rotation_translation(
            DQuat::from_xyzw(turn.x.into(), turn.y.into(), turn.z.into(), turn.w.into()),
            eye.as_dvec3(),
        )
        .inverse();
        let place = self.place.translation.as_dvec3();
        let upper = (f64::from(ANGLE) / 2.0).sin_cos();
        let side = ((f64::from(ANGLE) / 2.0).tan() * f64::from(ASPECT))
            .atan()
            .sin_cos();
        let reach = |instance: InstanceTransform| {
            let at: DVec3 = instance.translation.as_dvec3() + place;
            let at = view_from_world.transform_point3(at);
            let ahead = -at.z;
            let from_sides = ahead * side.0 - at.x.abs() * side.1;
            let from_ends = ahead * upper.0 - at.y.abs() * upper.1;
            let from_near = ahead - f64::from(NEAR);
            from_sides.min(from_ends).min(from_near) + RADIUS
        };
        self.set.iter().map(reach).collect()
    }
}

/// What a tier did at a distance.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    visible: u32,
    /// Visible instances that were rejected, and how far the one that reached farthest was in view.
    lost: u32,
    deepest: f64,
    /// Kept instances that are not visible, and how far the farthest was from the view.
    extra: u32,
    farthest: f64,
}

impl Seen {
    fn count(&mut self, reach: f64, is_kept: bool) {
        self.visible += u32::from(reach > 0.0);
        if reach > 0.0 && !is_kept {
            self.lost += 1;
            self.deepest = self.deepest.max(reach);
        }
        if reach <= 0.0 && is_kept {
            self.extra += 1;
            self.farthest = self.farthest.max(-reach);
        }
    }
}

/// The rows of plans with more than `own_planes` rows share views.
fn seen(world: World, tier: CullingTier, own_planes: usize) -> Seen {
    let gpu = gpu();
    let (mut culler, _) = Culler::new(gpu.device, options(tier, false)).unwrap();
    culler.limit_own_planes(own_planes);
    let views = world.views();
    let request = CullRequest {
        world_from_local: world.place,
        views: (0..views.len() as u32).collect(),
        ..triangles_of(0)
    };
    let frame = CullFrame {
        views,
        requests: vec![request],
        changed: None,
    };
    let reaches: Vec<_> = world.eyes.iter().map(|eye| world.reaches(*eye)).collect();
    let sets = vec![world.set];
    run(
        &mut culler,
        gpu,
        &Scene {
            sets,
            frame: frame.clone(),
        },
    );
    let mut seen = Seen::default();
    for (view, reaches) in reaches.iter().enumerate() {
        let mut kept = vec![false; reaches.len()];
        for id in culler.read_survivors(gpu, &frame, 0, view).unwrap() {
            kept[id as usize] = true;
        }
        for (reach, kept) in reaches.iter().zip(kept) {
            seen.count(*reach, kept);
        }
    }
    seen
}

/// Whatever an entity's translation is, what is in view is kept. Large positions in the set have
/// steps: an instance may be lost if it reaches less than about a step into the view.
#[test]
fn what_is_in_view_is_kept_far_from_the_origin() {
    for far in [Far::Entity, Far::Positions, Far::Canceled] {
        for distance in [0.0, 1e4, 1e5, 1e6, 1e7] {
            for (tier, own_planes) in [
                (CullingTier::Subgroup, usize::MAX),
                (CullingTier::Subgroup, 0),
                (CullingTier::Cpu, usize::MAX),
            ] {
                let world = World::new(&mut rng(17), far, distance);
                let seen = seen(world, tier, own_planes);
                // Distance from a number to the next one, at the border of the cube.
                let step = f64::from((distance + 50.0) * f32::EPSILON);
                println!(
                    "{far:?} {distance:e} {tier} {own_planes}: {} visible; {} lost, by {:.1} steps ({:.4}); {} extra, by \
                     {:.1} steps ({:.4})",
                    seen.visible,
                    seen.lost,
                    seen.deepest / step,
                    seen.deepest,
                    seen.extra,
                    seen.farthest / step,
                    seen.farthest,
                );
                assert!(seen.visible > 1000, "{seen:?}");
                let name = format!("{far:?} {distance}: {seen:?}");
                assert!(seen.farthest < MAX_EXTRA * step, "{name}");
                match far {
                    // The planes leave room for what their translations are off.
                    Far::Entity | Far::Canceled => assert_eq!(seen.lost, 0, "{name}"),
                    Far::Positions => assert!(seen.deepest < MAX_LOST * step, "{name}"),
                }
            }
        }
    }
}

/// Number of steps beyond a view to which instances are kept.
const MAX_EXTRA: f64 = 16.0;

/// Number of steps that a rejected instance of large positions may be in view.
const MAX_LOST: f64 = 2.0;
