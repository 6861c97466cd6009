#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::render::animation::skeleton_of;
use bevy::{
    animation::{
        AnimationTargetId, animated_field,
        animation_curves::{AnimatableCurve, AnimatableKeyframeCurve},
    },
    mesh::skinning::SkinnedMesh,
};
use proptest::{prelude::*, test_runner::FileFailurePersistence};

/// A number of a file: seldom one that is none, or far too large.
fn number() -> impl Strategy<Value = f32> {
    let odd = [0.0, -1.0, 1e-30, 1e30, f32::MAX, f32::INFINITY, f32::NAN];
    prop_oneof![
        60 => -2.0f32..2.0,
        1 => prop::sample::select(odd.to_vec()),
    ]
}

/// A node: the one above it, whether clips name it, and its transform.
type Node = (Option<usize>, bool, [f32; 10]);

fn node() -> impl Strategy<Value = Node> {
    let above = prop::option::of(any::<usize>());
    (above, any::<bool>(), prop::array::uniform10(number()))
}

/// The name of a node in clips.
fn target(node: usize) -> AnimationTargetId {
    AnimationTargetId::from_name(&Name::new(node.to_string()))
}

/// The skeleton of a skin whose joints are these nodes, some of which may not be there.
fn skeleton(nodes: &[Node], joints: &[usize]) -> Skeleton {
    let mut scene = World::new();
    let mut entities: Vec<Entity> = Vec::new();
    for (at, (above, is_named, numbers)) in nodes.iter().enumerate() {
        let [x, y, z, turn @ .., a, b, c] = *numbers;
        let transform = Transform {
            translation: Vec3::new(x, y, z),
            rotation: Quat::from_array(turn),
            scale: Vec3::new(a, b, c),
        };
        let mut entity = scene.spawn(transform);
        if *is_named {
            entity.insert(target(at));
        }
        if let Some(above) = above
            && at > 0
        {
            entity.insert(ChildOf(entities[above % at]));
        }
        entities.push(entity.id());
    }
    let joint = |at: &usize| entities.get(*at).copied().unwrap_or(Entity::PLACEHOLDER);
    let skin = SkinnedMesh {
        inverse_bindposes: Handle::default(),
        joints: joints.iter().map(joint).collect(),
    };
    skeleton_of(&scene, &skin)
}

/// What a clip says of a node: which of its fields has which numbers at which times.
type Channel = (usize, u8, Vec<(f32, [f32; 4])>);

fn channel() -> impl Strategy<Value = Channel> {
    let key = (number(), prop::array::uniform4(number()));
    (0usize..6, 0u8..3, prop::collection::vec(key, 0..5))
}

/// A length in seconds: seldom one that no clip may have.
fn seconds() -> impl Strategy<Value = f32> {
    let odd = [-1.0, 1e-30, 512.0, 1e30, f32::INFINITY, f32::NAN];
    prop_oneof![
        12 => 0.0f32..0.4,
        1 => prop::sample::select(odd.to_vec()),
    ]
}

fn clip(seconds: f32, channels: &[Channel]) -> AnimationClip {
    let mut clip = AnimationClip::default();
    for (node, field, keys) in channels {
        let node = target(*node);
        let turns = keys.iter().map(|(at, turn)| (*at, Quat::from_array(*turn)));
        let vectors = keys.iter();
        let vectors = vectors.map(|(at, [x, y, z, _])| (*at, Vec3::new(*x, *y, *z)));
        match field {
            0 => {
                if let Ok(curve) = AnimatableKeyframeCurve::new(turns) {
                    let field = animated_field!(Transform::rotation);
                    clip.add_curve_to_target(node, AnimatableCurve::new(field, curve));
                }
            }
            1 => {
                if let Ok(curve) = AnimatableKeyframeCurve::new(vectors) {
                    let field = animated_field!(Transform::scale);
                    clip.add_curve_to_target(node, AnimatableCurve::new(field, curve));
                }
            }
            _ => {
                if let Ok(curve) = AnimatableKeyframeCurve::new(vectors) {
                    let field = animated_field!(Transform::translation);
                    clip.add_curve_to_target(node, AnimatableCurve::new(field, curve));
                }
            }
        }
    }
    clip.set_duration(seconds);
    clip
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(400),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"), "/tests/hostile/seeds/skins.txt"
        )))),
        ..Default::default()
    })]

    /// Whatever a file says of a skin and its clips, there are poses or an error, and no panic.
    #[test]
    fn any_skin_has_poses_or_an_error(
        nodes in prop::collection::vec(node(), 0..6),
        joints in prop::collection::vec(0usize..7, 0..6),
        unbind in prop::collection::vec(prop::array::uniform16(number()), 0..7),
        clips in prop::collection::vec(
            (seconds(), prop::collection::vec(channel(), 0..6), any::<bool>()),
            0..4,
        ),
        rate in prop::option::of(number()),
    ) {
        let skeleton = skeleton(&nodes, &joints);
        let clips = clips.iter().map(|(seconds, channels, loops)| (clip(*seconds, channels), *loops));
        let clips: Vec<_> = clips.collect();
        let unbind: Vec<_> = unbind.iter().map(Mat4::from_cols_array).collect();
        match bake(&skeleton, &clips, &unbind, rate) {
            Ok(poses) => {
                let counts = (poses.joint_count(), poses.clip_count());
                prop_assert_eq!(counts, (joints.len(), clips.len()));
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

fn refused(
    skeleton: &Skeleton,
    clips: &[(AnimationClip, bool)],
    rate: Option<f32>,
) -> AnimationError {
    bake(skeleton, clips, &[], rate).unwrap_err()
}

/// A long clip without keyframes, and a skin without bind poses, are a few hundred bytes.
#[test]
fn a_short_file_gets_no_gigabytes() {
    let skeleton = skeleton(&[], &[0; 400]);
    let long = (clip(511.0, &[]), true);
    let short = (clip(1.0, &[]), true);
    for rate in [None, Some(1000.0)] {
        let error = refused(&skeleton, core::slice::from_ref(&long), rate);
        let is_limit = matches!(error, AnimationError::TooManyMatrices { .. });
        assert!(is_limit && error.to_string().contains("4194304"), "{error}");
    }
    // The long one would fit alone: 10,477 poses.
    let error = refused(&skeleton, &[short.clone(), long], Some(20.5));
    let all = AnimationError::TooManyMatrices {
        matrices: 400 * (22 + 10_477),
        limit: 1 << 22,
    };
    assert_eq!(error, all);
    assert!(bake(&skeleton, &[short], &[], None).is_ok());
}
