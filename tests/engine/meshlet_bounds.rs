//! No meshlet with a visible triangle is ever rejected, for random meshes, sets, instances and
//! views. To find the visible triangles, the test clips each triangle in `f64` and examines the
//! area and winding that remain on the screen.

use bevy_gpu_culling::{
    cull::{
        BoundingSphere, CullView, DrawShape, Region,
        layout::meshlets::{GpuMeshlet, MeshletRow},
        layout::{Chunk, ViewPlanes},
        plan::{Plan, PlanLimits, PlanRequest},
        reference::{MeshletVote, Survivor, load_survivor, vote_meshlet},
    },
    instance::{PackedInstance, ScaleKind},
    meshlet::{MeshData, MeshletMesh, MeshletSettings},
};
use glam::camera::rh::{proj::directx, view};
use glam::{Affine3A, DMat4, DQuat, DVec2, DVec3, DVec4, EulerRot, Mat4, Quat, Vec3, Vec4};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Screen area below which a triangle does not count as visible. The whole screen has an area of 4,
/// so this is a hundredth of a pixel at 4K.
const MIN_AREA: f64 = 1e-8;

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// A closed mesh.
    Ball,
    /// An open mesh.
    Sheet,
    /// Random triangles.
    Soup,
}

/// A mesh of several hundred triangles around the origin.
fn mesh(shape: Shape, noise: f32, seed: u64, max_triangles: u32) -> MeshletMesh {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (rings, around) = (14u32, 24u32);
    let mut random = |size: f32| {
        Vec3::new(
            rng.random_range(-1.0..1.0),
            rng.random_range(-1.0..1.0),
            rng.random_range(-1.0..1.0),
        ) * size
    };
    let at = |ring: u32, k: u32| ring * around + k % around;
    let quads = (0..rings).flat_map(|ring| (0..around).map(move |k| (ring, k)));
    let grid: Vec<u32> = quads
        .flat_map(|(r, k)| {
            let [a, b, c, d] = [at(r, k), at(r, k + 1), at(r + 1, k), at(r + 1, k + 1)];
            [a, b, c, c, b, d]
        })
        .collect();
    let rows = (0..=rings).flat_map(|ring| (0..around).map(move |k| (ring, k)));
    let points: Vec<Vec3> = match shape {
        Shape::Ball => rows
            .map(|(ring, k)| {
                let polar = ring as f32 / rings as f32 * core::f32::consts::PI;
                let turn = k as f32 / around as f32 * core::f32::consts::TAU;
                let out = Vec3::new(
                    polar.sin() * turn.cos(),
                    polar.cos(),
                    polar.sin() * turn.sin(),
                );
                // Each pole is a single point, so that the ball stays closed.
                let bump = if ring % rings == 0 {
                    Vec3::ZERO
                } else {
                    random(noise * 0.2)
                };
                out * 1.5 + bump
            })
            .collect(),
        Shape::Sheet => rows
            .map(|(ring, k)| {
                let flat = Vec3::new(k as f32 / around as f32, 0.0, ring as f32 / rings as f32);
                (flat - Vec3::new(0.5, 0.0, 0.5)) * 3.0 + random(noise * 0.3)
            })
            .collect(),
        Shape::Soup => (0..900).map(|_| random(2.0)).collect(),
    };
    let indices = match shape {
        Shape::Ball => grid,
        // A sheet does not wrap around, so the last column of quads is left out.
        Shape::Sheet => grid
            .chunks(6)
            .zip(0u32..)
            .filter(|(_, quad)| quad % around != around - 1)
            .flat_map(|(quad, _)| quad.iter().copied())
            .collect(),
        Shape::Soup => (0..900).collect(),
    };
    let settings = MeshletSettings {
        max_triangles,
        ..Default::default()
    };
    MeshletMesh::build(&MeshData::from_positions(&points, Some(indices)), &settings).unwrap()
}

/// One instance of a mesh in a set, and a view of it.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    noise: f32,
    seed: u64,
    max_triangles: u32,
    position: Vec3,
    turn: Vec3,
    scale: Vec3,
    set_turn: Vec3,
    set_scale: Vec3,
    eye: Vec3,
    target: Vec3,
    orthographic: bool,
    mirrored: bool,
    fov: f32,
}

impl Case {
    fn instance(&self) -> PackedInstance {
        let [x, y, z] = self.turn.to_array();
        PackedInstance::new(self.position, Quat::from_euler(EulerRot::XYZ, x, y, z))
    }

    fn world(&self) -> Affine3A {
        let [x, y, z] = self.set_turn.to_array();
        let turn = Quat::from_euler(EulerRot::XYZ, x, y, z);
        Affine3A::from_scale_rotation_translation(self.set_scale, turn, Vec3::new(3.0, -1.0, 2.0))
            * Affine3A::from_quat(turn)
    }

    fn clip_from_world(&self) -> Mat4 {
        let clip = if self.orthographic {
            let side = self.fov * 4.0;
            directx::orthographic(-side, side, -side, side, 60.0, 0.0)
        } else {
            directx::perspective_infinite_reverse(self.fov, 1.3, 0.05)
        };
        let mirror = Vec3::new(if self.mirrored { -1.0 } else { 1.0 }, 1.0, 1.0);
        Mat4::from_scale(mirror)
            * clip
            * view::look_at_mat4(self.eye, self.target, Vec3::new(0.1, 1.0, 0.2))
    }

    fn tables(&self) -> (ViewPlanes, Chunk, Vec4) {
        let view = CullView::from_clip_from_world(&self.clip_from_world());
        let view = if self.orthographic {
            view
        } else {
            view.without_far()
        };
        let row = view.planes_in(&self.world());
        let region = [Region {
            page: 0,
            first: 0,
            first_bound: 0,
            capacity: 1024,
        }];
        let request = PlanRequest {
            regions: &region,
            len: 1,
            scale: ScaleKind::NonUniform,
            world_from_local: self.world(),
            sphere: BoundingSphere {
                center: Vec3::ZERO,
                radius: 2.0,
            },
            more: &[],
            shapes: &[DrawShape::NonIndexed {
                vertex_count: 3,
                first_vertex: 0,
            }],
            fades: false,
            thins: false,
            rings: None,
            row_group: 1,
            lists: 1,
            rows: &[row],
        };
        let limits = PlanLimits {
            counts: 1000,
            workgroups: 1000,
            few_counts: u32::MAX,
            fine_words: 0,
        };
        let plan = Plan::build(&[request], limits);
        (row, plan.batches[0].chunks[0], view.eye_in(&self.world()))
    }
}

/// Screen area of the part of a triangle that is inside the view. It is above 0 if the triangle is
/// counterclockwise.
fn area_on_screen(corners: [DVec4; 3], far: bool) -> f64 {
    let mut polygon = corners.to_vec();
    let sides: [fn(DVec4) -> f64; 6] = [
        |p| p.w + p.x,
        |p| p.w - p.x,
        |p| p.w + p.y,
        |p| p.w - p.y,
        |p| p.w - p.z,
        |p| p.z,
    ];
    for side in &sides[..if far { 6 } else { 5 }] {
        let mut kept = Vec::new();
        for (i, &b) in polygon.iter().enumerate() {
            let a = polygon[(i + polygon.len() - 1) % polygon.len()];
            let (da, db) = (side(a), side(b));
            if (da >= 0.0) != (db >= 0.0) {
                kept.push(a.lerp(b, da / (da - db)));
            }
            if db >= 0.0 {
                kept.push(b);
            }
        }
        polygon = kept;
        if polygon.len() < 3 {
            return 0.0;
        }
    }
    let screen: Vec<DVec2> = polygon.iter().map(|p| DVec2::new(p.x, p.y) / p.w).collect();
    let fan = screen.windows(2).skip(1);
    fan.map(|edge| (edge[0] - screen[0]).perp_dot(edge[1] - screen[0]) * 0.5)
        .sum()
}

/// Votes of a case, and the last rejected meshlet that has a visible front.
#[derive(Default, Debug)]
struct Found {
    visible: usize,
    outside: usize,
    facing_away: usize,
    wrong: Option<String>,
}

fn check(case: &Case, edit_eye: impl Fn(Vec4) -> Vec4) -> Found {
    let mesh = mesh(case.shape, case.noise, case.seed, case.max_triangles);
    let (planes, chunk, eye) = case.tables();
    let row = MeshletRow {
        planes,
        chunk,
        eye: edit_eye(eye),
        ..MeshletRow::default()
    };
    let survivor = load_survivor(chunk.flags, &[case.instance()], &case.scale.to_array(), 0);
    let clip = case.clip_from_world().as_dmat4() * DMat4::from(case.world().as_daffine3());
    let points: Vec<DVec4> = mesh
        .positions()
        .iter()
        .map(|point| clip * place(&survivor, *point).extend(1.0))
        .collect();
    let mut found = Found::default();
    for (index, meshlet) in mesh.meshlets().iter().enumerate() {
        let vote = vote_meshlet(&row, None, &survivor, &GpuMeshlet::from(meshlet));
        match vote {
            MeshletVote::Visible => {
                found.visible += 1;
                continue;
            }
            MeshletVote::Outside => found.outside += 1,
            MeshletVote::FacesAway => found.facing_away += 1,
            MeshletVote::Hidden => unreachable!("without a depth"),
        }
        for triangle in mesh.meshlet_indices(meshlet).chunks(3) {
            let corners = [0, 1, 2].map(|i| points[triangle[i] as usize]);
            let area = area_on_screen(corners, case.orthographic);
            if area > MIN_AREA {
                found.wrong = Some(format!(
                    "meshlet {index} is {vote:?} but shows {area}: {meshlet:?}"
                ));
            }
        }
    }
    found
}

/// The exact result of the draw's transform of a vertex into the set's space.
fn place(survivor: &Survivor, point: Vec3) -> DVec3 {
    let [x, y, z, w] = survivor.rotation.as_dvec4().to_array();
    let (axis, point) = (
        DVec3::new(x, y, z),
        point.as_dvec3() * survivor.scale.as_dvec3(),
    );
    let t = 2.0 * axis.cross(point);
    let turned = point + w * t + axis.cross(t);
    debug_assert!(turned.distance(DQuat::from_xyzw(x, y, z, w).normalize() * point) < 1e-3);
    turned + survivor.position.as_dvec3()
}

fn vector(size: f32) -> impl Strategy<Value = Vec3> {
    [-size..size, -size..size, -size..size].prop_map(Vec3::from_array)
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = prop_oneof![Just(Shape::Ball), Just(Shape::Sheet), Just(Shape::Soup)];
    let mesh = (
        shape,
        0.0f32..1.0,
        any::<u64>(),
        prop_oneof![Just(124u32), 1u32..32],
    );
    let one = || prop_oneof![7 => 0.1f32..3.0, 1 => Just(0.0f32)];
    let scale = [one(), one(), one()];
    let instance = (vector(4.0), vector(3.1), scale, any::<bool>());
    let axis = || prop_oneof![0.2f32..3.0, -3.0f32..-0.2];
    let set = (vector(3.1), [axis(), axis(), axis()], any::<bool>());
    // Eyes far away, near and inside, which look at the instance or past it.
    let distance = prop_oneof![0.0f32..2.0, 2.0f32..30.0];
    let view = (
        vector(1.0),
        distance,
        vector(3.0),
        any::<bool>(),
        any::<bool>(),
        0.2f32..2.2,
    );
    (mesh, instance, set, view).prop_map(|(mesh, instance, set, view)| {
        let set_scale = if set.2 {
            Vec3::splat(set.1[0])
        } else {
            Vec3::from_array(set.1)
        };
        let mut case = Case {
            shape: mesh.0,
            noise: mesh.1,
            seed: mesh.2,
            max_triangles: mesh.3,
            position: instance.0,
            turn: instance.1,
            scale: if instance.3 {
                Vec3::splat(instance.2[0])
            } else {
                Vec3::from_array(instance.2)
            },
            set_turn: set.0,
            set_scale,
            eye: Vec3::ZERO,
            target: Vec3::ZERO,
            orthographic: view.3,
            mirrored: view.4,
            fov: view.5,
        };
        let center = case.world().transform_point3(case.position);
        let size = case.scale * set_scale.abs().max_element();
        case.eye = center + view.0.normalize_or(Vec3::X) * view.1 * size;
        case.target = center + view.2 * size * 0.5 + Vec3::splat(1e-3);
        case
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_meshlet_that_shows_a_triangle_is_never_culled(case in cases()) {
        let found = check(&case, |eye| eye);
        prop_assert!(found.wrong.is_none(), "{:?}", found.wrong);
    }
}

fn ball(set_scale: Vec3, orthographic: bool, mirrored: bool) -> Case {
    Case {
        shape: Shape::Ball,
        noise: 0.1,
        seed: 1,
        max_triangles: 16,
        position: Vec3::X,
        turn: Vec3::new(0.3, 1.0, -2.0),
        scale: Vec3::splat(1.5),
        set_turn: Vec3::new(0.2, 0.1, 0.7),
        set_scale,
        eye: Vec3::new(30.0, 12.0, 25.0),
        target: Vec3::new(4.0, 0.0, 2.0),
        orthographic,
        mirrored,
        fov: 1.2,
    }
}

/// Without this, the property would hold for a vote that keeps everything.
#[test]
fn cones_cull_much_of_what_faces_away() {
    for scale in [
        Vec3::ONE,
        Vec3::new(1.0, 0.5, 1.5),
        Vec3::new(-1.0, 1.0, 1.0),
        -Vec3::ONE,
    ] {
        for (orthographic, mirrored) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let found = check(&ball(scale, orthographic, mirrored), |eye| eye);
            let all = found.visible + found.outside + found.facing_away;
            assert!(
                found.facing_away * 5 > all,
                "{scale} {orthographic} {mirrored}: {found:?}"
            );
            assert!(
                found.visible * 3 > all && found.wrong.is_none(),
                "{found:?}"
            );
        }
    }
}

/// The check detects an eye on the wrong side and an eye that has moved.
#[test]
fn a_wrong_eye_is_seen() {
    for orthographic in [false, true] {
        let case = ball(Vec3::new(1.0, 0.5, 1.5), orthographic, false);
        assert!(check(&case, |eye| -eye).wrong.is_some());
        let moved = |eye: Vec4| Vec4::new(eye.y, -eye.x, eye.z, eye.w);
        assert!(check(&case, moved).wrong.is_some());
    }
}
