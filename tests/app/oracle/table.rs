//! `docs/guide/compatibility.md`, from the lists that the other tests work off.

use super::{
    axes::{COMBINATIONS, Combination, Eye, Light, Matter, Pass},
    changes::STEPS,
    features,
};
use crate::common::generated::assert_generated;
use bevy::prelude::Msaa;
use bevy_gpu_culling::instance::ScaleKind;
use std::fmt::Write as _;

const PATH: &str = "docs/guide/compatibility.md";

/// Heading of the part that `tests/adapters` generates.
const DEVICES: &str = "\n## Devices\n";

/// Area and name of a feature, and a function that finds the combinations that draw it.
type Feature = (&'static str, &'static str, fn(&Combination) -> bool);

#[rustfmt::skip]
const FEATURES: &[Feature] = &[
    ("Pass", "forward", |c| c.pass == Pass::Forward),
    ("Pass", "depth prepass", |c| c.pass == Pass::DepthPrepass),
    ("Pass", "normal prepass, compared itself", |c| c.pass == Pass::FullPrepass),
    ("Pass", "motion vectors of a moving entity and a moving camera, compared themselves", |c| c.pass == Pass::FullPrepass),
    ("Pass", "deferred", |c| c.pass == Pass::Deferred),
    ("Pass", "alpha mask", |c| matches!(c.pass, Pass::Mask | Pass::MaskPrepass)),
    ("Pass", "alpha mask with prepasses", |c| c.pass == Pass::MaskPrepass),
    ("Pass", "alpha to coverage", |c| c.pass == Pass::AlphaToCoverage),
    ("Pass", "blend; instances are sorted by depth, each region of the set alone", |c| c.pass == Pass::Blend),
    ("Pass", "transmission; thickness follows the entity's scale, not the instance's", |c| c.pass == Pass::Transmission),
    ("Pass", "transmission of a material that blends", |c| c.pass == Pass::BlendTransmission),
    ("MSAA", "off", |c| c.msaa == Msaa::Off),
    ("MSAA", "2", |c| c.msaa == Msaa::Sample2),
    ("MSAA", "4", |c| c.msaa == Msaa::Sample4),
    ("MSAA", "8", |c| c.msaa == Msaa::Sample8),
    ("Light", "directional, shadow cascades", |c| matches!(c.light, Light::Directional | Light::All)),
    ("Light", "point, six shadow faces", |c| matches!(c.light, Light::Point | Light::All)),
    ("Light", "spot, shadow map", |c| matches!(c.light, Light::Spot | Light::All)),
    ("Light", "without shadow maps", |c| c.light == Light::None),
    ("Material", "`StandardMaterial`", |c| c.matter == Matter::Plain),
    ("Material", "base color, normal, metallic-roughness, occlusion and emissive maps, tangents", |c| c.matter == Matter::Textured),
    ("Material", "`ExtendedMaterial`", |c| c.matter == Matter::Extended),
    ("Material", "`Material` with its own fragment shader", |c| c.matter == Matter::CustomFragment),
    ("Material", "`Material` with its own vertex shader that imports `bevy_gpu_culling::draw_instance`", |c| c.matter == Matter::CustomVertex),
    ("Material", "`Material` with its own vertex shader that calls Bevy's `mesh_functions` and does not know instances: 176 bytes per survivor and view", |c| c.matter == Matter::MeshVertex),
    ("Material", "`get_tag` in a vertex or fragment shader, with `InstanceMeshUniforms`", |c| matches!(c.matter, Matter::MeshVertex | Matter::FragmentTag)),
    ("Material", "`TintedMaterial`, a color per instance, as entities with their own `StandardMaterial`; also by `MeshTag` and with `InstanceMeshUniforms`", |c| matches!(c.matter, Matter::Tinted | Matter::TintedVertexColors)),
    ("Mesh", "vertex colors", |c| matches!(c.matter, Matter::VertexColors | Matter::TintedVertexColors)),
    ("Mesh", "two UV sets", |c| c.matter == Matter::TwoUvSets),
    ("Mesh", "without indices", |c| c.matter == Matter::NonIndexed),
    ("Mesh", "compressed (`Mesh::compress_mesh`), also with an own vertex shader and with `InstanceMeshUniforms`", |c| matches!(c.matter, Matter::Compressed | Matter::CompressedCustomVertex | Matter::CompressedFragmentTag)),
    ("Instance", "uniform scale", |c| c.scales() == ScaleKind::Uniform),
    ("Instance", "non-uniform scale", |c| c.scales() == ScaleKind::NonUniform),
    ("Camera", "perspective (infinite, reverse z)", |c| c.eye == Eye::Perspective),
    ("Camera", "orthographic", |c| c.eye == Eye::Orthographic),
    ("Camera", "a custom projection, off-center", |c| c.eye == Eye::Custom),
    ("Camera", "split screen: two cameras with viewports and an order", |c| c.eye == Eye::SplitScreen),
    ("Camera", "HDR", |c| c.eye == Eye::Hdr),
    ("Camera", "image target", |_| true),
    ("Effect", "skybox", |c| c.eye == Eye::Skybox),
    ("Effect", "distance fog", |c| c.eye == Eye::Fog),
    ("Effect", "screen-space ambient occlusion", |c| c.eye == Eye::Ssao),
    ("Effect", "bloom", |c| c.eye == Eye::Bloom),
    ("Effect", "motion blur", |c| c.eye == Eye::MotionBlur),
];

/// Features that other tests prove.
const PROVEN: &[(&str, &str, &str)] = &[
    (
        "Material",
        "`MeshTag` and Bevy's component arrays (`GpuComponentArrayBuffer`) on a set's entity: data of the whole set, by `get_tag`",
        "component_arrays_hold_data_of_a_sets_entity",
    ),
    (
        "Mesh",
        "levels of detail of compressed meshes",
        "levels_of_compressed_meshes_look_like_entities_with_them",
    ),
    (
        "Culling",
        "a caster that no camera sees, but a light",
        "a_caster_that_no_camera_sees_casts_its_shadow",
    ),
    (
        "Culling",
        "`NoFrustumCulling`",
        "without_frustum_culling_every_instance_is_drawn_in_every_view",
    ),
    (
        "Culling",
        "`FreezeCulling` on a camera",
        "a_frozen_camera_draws_what_it_kept",
    ),
    (
        "Pass",
        "near instances are drawn first, and `NoInstanceSorting` keeps the set's order",
        "near_instances_come_first_unless_the_set_keeps_its_order",
    ),
    (
        "Pass",
        "levels of detail (`InstanceLods`): each instance looks like an entity with the mesh of its level",
        "instances_look_like_entities_with_the_mesh_of_their_level",
    ),
    (
        "Pass",
        "cross-fades of levels of detail (`InstanceLods::fade`), as of entities with `VisibilityRange`",
        "levels_fade_as_entities_do",
    ),
    (
        "Culling",
        "`InstanceVisibilityRange`: each instance looks like an entity with the `VisibilityRange`",
        "instances_in_ranges_look_like_entities_with_them",
    ),
    (
        "Pass",
        "the same in forward, deferred, masked, and with prepasses",
        "ranges_fade_in_all_passes",
    ),
    (
        "Culling",
        "Bevy's `VisibilityRange` on a set's entity: it acts on the whole set, by its origin",
        "bevys_range_acts_on_the_whole_set",
    ),
    (
        "Culling",
        "`InstanceOcclusion` on a camera: the same picture in each frame, also with MSAA, several cameras, orthographic, masked, levels that fade, edits",
        "a_forward_camera_draws_the_same_picture",
    ),
    (
        "Culling",
        "the same on a camera with any prepass, deferred, or with an atmosphere, by Bevy's `OcclusionCulling`, which the camera gets; sets and entities hide each other",
        "a_camera_with_a_prepass_draws_the_same_picture",
    ),
    (
        "Culling",
        "occlusion of sets that are drawn by meshlets, instance by instance",
        "sets_by_meshlets_are_hidden",
    ),
    (
        "Culling",
        "`FreezeCulling` on a camera that hides: it goes on drawing what it saw",
        "a_frozen_camera_draws_what_it_saw",
    ),
    (
        "Pass",
        "motion vectors of instances that move within their set, with `InstanceSet::keep_previous`: changed by `set`, or written by the GPU",
        "moved_instances_have_the_motion_of_moved_entities",
    ),
    (
        "Pass",
        "motion vectors of instances that `splice` shifts: none, in that frame",
        "spliced_instances_have_no_motion",
    ),
    (
        "Pass",
        "`Wireframe` (`WireframePlugin`), lines of width 1",
        "a_wireframe_goes_around_each_instance",
    ),
    (
        "Pass",
        "an `InstanceOffset`: as a child with this transform, also mirrored, with shadows, prepasses, and the motion of an offset that changes",
        "an_offset_is_as_a_child_with_this_transform",
    ),
    (
        "Pass",
        "`Wind`: as entities with bent meshes, with shadows and an `InstanceOffset`; in prepasses, the motion of entities that move",
        "bent_instances_look_like_entities_with_bent_meshes",
    ),
    (
        "Pass",
        "`InstanceAnimation`: as skinned entities at the same moment of the same clips; with shadows, as entities with the mesh in the twin's pose",
        "tests/picture",
    ),
    (
        "Pass",
        "motion vectors of figures that an `InstanceAnimation` moves: as of skinned entities whose joints move",
        "figures_have_the_motion_of_skinned_entities",
    ),
    (
        "Camera",
        "`CameraDetail`: each of two cameras draws levels and sizes as if the settings were its own, with its cascades",
        "each_camera_draws_in_its_own_detail",
    ),
    (
        "Scene",
        "an `InstanceScene`: as the scene spawned at each instance",
        "a_scene_looks_as_if_it_was_spawned_at_each_instance",
    ),
    (
        "Scene",
        "`EXT_mesh_gpu_instancing` in glTF files, with the cargo feature `gltf`",
        "instances_of_a_file_look_like_nodes",
    ),
    (
        "Culling",
        "`NoCpuCulling` on a set's entity",
        "tests/picture",
    ),
    (
        "Culling",
        "a set's entity that is also in the render world: `SyncToRenderWorld`, an extracted component, a light, or a lamp with a mesh beside it",
        "tests/picture",
    ),
    (
        "Light",
        "a light that is hidden, out of view, or shown again",
        "tests/picture",
    ),
    (
        "Camera",
        "a `Camera2d` beside the `Camera3d`",
        "tests/picture",
    ),
    (
        "Camera",
        "`Viewport::depth` other than 0 to 1, also in a camera that hides",
        "tests/app/occlusion",
    ),
    (
        "Instance",
        "positions up to 4 million units that the entity's transform cancels",
        "large_positions_that_the_transform_cancels_look_as_entities_do",
    ),
    (
        "Change",
        "`splice`, `extend`, `truncate`, `clear`: the set is whole in every frame",
        "a_set_that_grows_or_shrinks_is_whole_in_every_frame",
    ),
    (
        "Change",
        "the same beyond the sizes of shared pages",
        "a_large_set_that_grows_is_whole_in_every_frame",
    ),
    (
        "Change",
        "instances that a compute pass writes each frame: picture and survivors of the same instances uploaded",
        "a_written_set_looks_like_the_same_instances_uploaded",
    ),
];

/// What a set does not support, and why.
const REFUSED: &[(&str, &str)] = &[
    (
        "`Material` with a vertex shader that does not know instances, on the tier `Cpu`",
        "rejected; the log names it once; nothing is drawn (`a_vertex_stage_for_meshes_is_refused_where_nobody_writes_its_uniforms`)",
    ),
    (
        "morphed meshes; skinned meshes without an `InstanceAnimation`, also without the component `SkinnedMesh`",
        "rejected with one error; nothing is drawn: all instances would share one pose (`a_mesh_with_joints_draws_nothing`)",
    ),
    (
        "`Lightmap`",
        "rejected with one warning; nothing is drawn: all instances would share one part of it (`a_lightmapped_set_draws_nothing`)",
    ),
    (
        "motion vectors of moved instances without `InstanceSet::keep_previous`",
        "they have their entity's",
    ),
    (
        "`Material` of which one vertex shader imports `bevy_gpu_culling::draw_instance` and another does not",
        "rejected; the log names it once; nothing is drawn (`a_material_of_which_only_some_vertex_stages_read_instances_is_refused`)",
    ),
    (
        "`Material` with more storage buffers in its vertex stage than the device binds besides the sets' buffers",
        "rejected; the log names it once; nothing is drawn (`a_material_with_more_storage_buffers_than_a_vertex_stage_binds_is_refused`)",
    ),
    (
        "instances that the GPU writes, on the tier `Cpu`",
        "rejected, with one error; nothing is drawn (`a_written_set_is_refused_on_the_tier_cpu`)",
    ),
    (
        "wireframes of wide lines or quads, of materials that import `bevy_gpu_culling::draw_instance`, and on the tier `Cpu`",
        "left out, with one warning (`a_wireframe_that_cannot_be_drawn_is_left_out`)",
    ),
    (
        "Bevy's `OcclusionCulling` on a light",
        "it hides no instances; `InstanceOcclusion` on the light does, of all kinds of lights (`tests/app/occlusion`)",
    ),
    (
        "`get_tag` without `InstanceMeshUniforms`",
        "one tag per entity; an instance's arrives at location 14, and its data at location 13",
    ),
    (
        "sorting a blended set's instances among entities, instances of another set, or instances of another region of the same set",
        "one phase item per set, which Bevy sorts as a whole; regions are drawn one after the other. A set has several regions only if one binding does not hold it (8 million instances on an adapter with 128 MiB)",
    ),
];

/// What Bevy itself does not support, with or without sets.
const NOT_BEVYS: &[(&str, &str)] = &[
    (
        "MSAA with deferred, or with screen-space ambient occlusion",
        "Bevy needs `Msaa::Off`",
    ),
    ("alpha to coverage without MSAA", "Bevy draws it as a mask"),
    (
        "blended and transmissive materials in prepasses",
        "Bevy leaves them out",
    ),
    (
        "entities with a `VisibilityRange` that fade, with a depth prepass alone",
        "Bevy writes the depth of pixels that it then does not draw; sets are drawn as without the prepass (`ranges_fade_in_all_passes`)",
    ),
];

/// What no test covers, and why.
const UNTESTED: &[(&str, &str)] = &[
    (
        "temporal anti-aliasing",
        "needs `bevy_anti_alias`, which the tests do not build; the motion vectors are compared",
    ),
    (
        "a window as target",
        "tests have no display; the demo draws into one",
    ),
    (
        "light textures, decals, reflection probes, generated environment maps, atmosphere",
        "no scene has them yet",
    ),
    (
        "`RectLight` with Bevy's feature `area_light_luts`",
        "the tests do not build it",
    ),
    (
        "`CameraOutputMode::Skip`, custom render graphs, dozens of views in one picture",
        "no scene has them yet",
    ),
];

fn generate() -> String {
    let mut text = String::from(
        "# Compatibility\n\
         \n\
         What Bevy 0.20.1 does to a mesh, and whether it does it to an instance set. `tests/app/oracle`\n\
         draws every feature that works twice, as a set and as one entity per instance: at most 0.05 % of\n\
         the pixels may differ by more than 8/255, no six of them in one patch, and the mean of all by at\n\
         most 0.05/255; the survivors of every view equal the CPU twin's. One scene of each pass is also\n\
         drawn with pipelined rendering, and with pipelines that are compiled in the background, Bevy's\n\
         default. `UPDATE_DOCS=1 cargo test --test app oracle` rewrites this file. The last column is the\n\
         number of scenes that draw the feature, or the test that proves it.\n\
         \n\
         CI draws them with software Vulkan, which has one and four samples and no bindless materials. On\n\
         an NVIDIA H200 (Vulkan, driver 580.159.04, 2026-11-23) all scenes and tests pass with MSAA 2 and\n\
         8, too, and with bindless materials, Bevy's default there.\n\
         \n\
         | | feature | | scenes |\n\
         | --- | --- | --- | --- |\n",
    );
    for (area, feature, uses) in FEATURES {
        let scenes = COMBINATIONS.iter().filter(|c| uses(c)).count();
        assert!(scenes > 0, "{feature}: no combination draws it");
        let _ = writeln!(text, "| {area} | {feature} | works | {scenes} |");
    }
    for (name, _) in STEPS {
        let _ = writeln!(text, "| Change | {name} | works | 1 |");
    }
    for (area, feature, _) in features::FEATURES {
        let _ = writeln!(text, "| {area} | {feature} | works | 1 |");
    }
    for (area, feature, test) in PROVEN {
        let _ = writeln!(text, "| {area} | {feature} | works | `{test}` |");
    }
    for (kind, rows) in [
        ("No", REFUSED),
        ("Not Bevy", NOT_BEVYS),
        ("Untested", UNTESTED),
    ] {
        for (feature, reason) in rows {
            let result = match kind {
                "No" => "rejected or missing",
                "Not Bevy" => "not supported by Bevy",
                _ => "not tested",
            };
            let _ = writeln!(text, "| {kind} | {feature} | {result} | {reason} |");
        }
    }
    text
}

#[test]
fn the_table_is_what_the_tests_draw() {
    let part = ["", DEVICES];
    assert_generated(PATH, part, &generate(), "app oracle");
}
