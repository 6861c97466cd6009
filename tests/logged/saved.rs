//! Worlds with sets that are saved and loaded, and entities that are cloned: everything comes back,
//! once.

use crate::{
    gltf_file::{File, instanced},
    log::Log,
    scene::{How, Stage, assert_same_picture, different_pixels, field},
};
use bevy::{
    camera::visibility::{VisibilityClass, VisibilityRange},
    ecs::{entity::EntityHashMap, reflect::AppTypeRegistry},
    gltf::{Gltf, GltfLoaderSettings, convert_coordinates::GltfConvertCoordinates},
    prelude::*,
    world_serialization::{DynamicWorld, DynamicWorldBuilder},
};
use bevy_gpu_culling::{
    meshlet::MeshLods,
    prelude::*,
    render::{BuiltLods, BuiltMeshlets},
};
use serde_json::json;
use std::{
    collections::BTreeSet,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

const BOX: &str = "file.glb#Mesh0/Primitive0";
const TORUS: &str = "torus.glb#Mesh0/Primitive0";

/// A folder with a file of each kind.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    // A glTF file of the tests has these attributes, and levels must have the mesh's.
    let mut torus = Mesh::from(Torus::default());
    torus.remove_attribute(Mesh::ATTRIBUTE_UV_0);
    let meshlets = MeshletMesh::from_mesh(&torus, &MeshletSettings::default()).unwrap();
    write("torus.meshlets", &meshlets.to_bytes().unwrap());
    let lods = MeshLods::from_mesh(&torus, &LodSettings::default()).unwrap();
    write("torus.lods", &lods.to_bytes().unwrap());
    write("field.instances", &field(60, true).to_bytes().unwrap());
    let mut file = File::default();
    let places: Vec<_> = field(60, false)
        .iter()
        .map(|at| at.translation.to_array())
        .collect();
    let scales = (0..60).map(|at| [if at % 2 == 0 { 1.0 } else { -1.0 }, 1.0, 1.3]);
    let scales: Vec<_> = scales.collect();
    let attributes = json!({ "TRANSLATION": file.floats(&places), "SCALE": file.floats(&scales) });
    let turn = Quat::from_rotation_x(0.3).to_array();
    let node = instanced(json!({ "rotation": turn }), attributes);
    write("file.glb", &file.finish(vec![node], 1));
    let smooth = File {
        shape: Some(torus),
        ..default()
    };
    write("torus.glb", &smooth.finish(vec![json!({ "mesh": 0 })], 1));
    let mut map = std::io::Cursor::new(Vec::new());
    let black = image::GrayImage::new(1, 1);
    black.write_to(&mut map, image::ImageFormat::Png).unwrap();
    write("map.png", map.get_ref());
    let rule =
        "fn scatter_share(p: vec3<f32>, slope: vec2<f32>, share: f32) -> f32 { return share; }";
    write("rule.wgsl", rule.as_bytes());
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tree.glb");
    write("tree.glb", &std::fs::read(tree).unwrap());
    folder
}

/// A stage that loads the files of a folder.
fn stage(folder: &Path) -> Stage {
    let mut stage = Stage::with_files(How::Set(None), folder);
    stage.lights(false);
    let eye = Transform::from_xyz(0.0, 3.0, 14.0).looking_at(Vec3::ZERO, Vec3::Y);
    stage.camera(eye, ());
    stage
}

fn server(stage: &Stage) -> AssetServer {
    stage.app.world().resource::<AssetServer>().clone()
}

/// Updates the app until the condition holds.
fn wait(stage: &mut Stage, what: &str, holds: impl Fn(&mut World) -> bool) {
    for _ in 0..2000 {
        stage.update(1);
        if holds(stage.app.world_mut()) {
            return;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    panic!("waited too long: {what}");
}

/// Waits for handles.
fn wait_for(stage: &mut Stage, handle: impl Into<UntypedHandle>) {
    let (server, handle) = (server(stage), handle.into());
    wait(stage, "a file", |_| {
        server.is_loaded_with_dependencies(&handle)
    });
}

/// The text of a world with these entities.
fn save(stage: &Stage, entities: impl IntoIterator<Item = Entity>) -> String {
    let world = stage.app.world();
    let registry = world.resource::<AppTypeRegistry>().read();
    // A loaded root would spawn its scene again, beside what is saved of it.
    let builder = DynamicWorldBuilder::from_world(world, &registry)
        .deny_component::<WorldAssetRoot>()
        // Bevy cannot write its own.
        .deny_component::<VisibilityClass>();
    let saved = builder.extract_entities(entities.into_iter()).build();
    saved.serialize(&registry).unwrap()
}

/// Loads entities from a text. Returns them by their places in the list of what was saved.
fn load(stage: &mut Stage, folder: &Path, text: &str, saved: &[Entity]) -> Vec<Entity> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("saved-{}.scn.ron", NUMBER.fetch_add(1, Relaxed));
    std::fs::write(folder.join(&name), text).unwrap();
    let handle: Handle<DynamicWorld> = server(stage).load(name);
    wait_for(stage, handle.clone());
    let mut map = EntityHashMap::default();
    let world = stage.app.world_mut();
    world.resource_scope(|world, worlds: Mut<Assets<DynamicWorld>>| {
        let loaded = worlds.get(&handle).unwrap();
        loaded.write_to_world(world, &mut map).unwrap();
    });
    saved.iter().map(|entity| map[entity]).collect()
}

/// Saves and loads a component alone. Returns its type's path.
fn comes_back<C: Component + Clone + PartialEq + TypePath>(
    stage: &mut Stage,
    folder: &Path,
    component: C,
) -> String {
    let name = C::type_path();
    let entity = stage.spawn(component.clone());
    let text = save(stage, [entity]);
    assert!(text.contains(name), "{text}");
    stage.app.world_mut().despawn(entity);
    let loaded = load(stage, folder, &text, &[entity])[0];
    let found = stage.entity(loaded).get::<C>().cloned();
    assert!(found.as_ref() == Some(&component), "{name}: {text}");
    stage.app.world_mut().despawn(loaded);
    name.to_owned()
}

#[test]
fn each_component_is_saved_and_loaded() {
    let _log = Log::start();
    let folder = folder();
    let mut stage = stage(folder.path());
    let files = server(&stage);
    let mut names = BTreeSet::new();
    macro_rules! come_back {
        ($($component:expr),+ $(,)?) => {
            $(names.insert(comes_back(&mut stage, folder.path(), $component));)+
        };
    }
    let range = VisibilityRange {
        start_margin: 1.0..2.0,
        end_margin: 3.0..5.5,
        use_aabb: true,
    };
    let indices = InstanceLods {
        levels: vec![
            InstanceLod::new(files.load::<Mesh>(BOX), 0.25),
            InstanceLod::new(6u32..12, 0.5),
        ],
        fade: 0.1,
        full: Some(0..6),
    };
    let place = Transform::from_xyz(1.0, 2.0, 3.0).with_scale(Vec3::new(1.0, -2.0, 0.5));
    let settings = MeshletSettings {
        max_triangles: 60,
        lods: Some(LodSettings::default()),
        ..default()
    };
    come_back!(
        AggregateDetail { below_pixels: 3.5 },
        CameraDetail {
            min_pixels: Some(2.0),
            ..default()
        },
        CullingRadius(2.5),
        GpuInstances(files.load("field.instances")),
        GpuInstances(files.load("file.glb#Node0/Instances")),
        InstanceImpostor { error: 0.75 },
        indices,
        InstanceMeshUniforms,
        InstanceOcclusion::default(),
        InstanceOffset::from(place),
        InstanceScene(files.load("tree.glb#Scene0")),
        InstanceVisibilityRange(range),
        MeshletMesh3d(files.load("torus.meshlets")),
        NoInstanceSorting,
        NoOcclusionCulling,
        Scatter {
            density_map: Some(files.load("map.png")),
            rule: Some(files.load("rule.wgsl")),
            scales: 0.5..1.5,
            ..default()
        },
        Wind::default(),
        InstanceAnimation {
            source: AnimationSource::InData { first_word: 1 },
            blend_seconds: 0.5,
            ..default()
        },
        BakeAnimation {
            rate: Some(50.0),
            ..default()
        },
        MeshLods3d(files.load("torus.lods")),
        BakeImpostor {
            sides: ImpostorSides::Above,
            views: 9,
            ..default()
        },
        ImpostorAtlas3d {
            atlas: Handle::default(),
            below_pixels: 30.0,
        },
        BuildLods(LodSettings::default()),
        BuildMeshlets(settings),
        BuiltLods(LodSettings::default()),
        BuiltMeshlets {
            mesh: files.load(BOX),
            settings,
        },
    );
    #[cfg(feature = "gizmos")]
    come_back!(ShowCullingGizmos::default());
    // It remembers nothing.
    let frozen = stage.spawn(FreezeCulling::default());
    let text = save(&stage, [frozen]);
    let loaded = load(&mut stage, folder.path(), &text, &[frozen])[0];
    assert!(stage.entity(loaded).contains::<FreezeCulling>());
    names.insert(FreezeCulling::type_path().to_owned());
    // It names another entity.
    let detached = DetachedInstance {
        set: frozen,
        index: 3,
        id: None,
    };
    let tree = stage.spawn(detached);
    let text = save(&stage, [frozen, tree]);
    let loaded = load(&mut stage, folder.path(), &text, &[frozen, tree]);
    let set = loaded[0];
    let found = stage.entity(loaded[1]).get::<DetachedInstance>().copied();
    assert_eq!(found, Some(DetachedInstance { set, ..detached }));
    names.insert(DetachedInstance::type_path().to_owned());

    // No component was forgotten here.
    let registry = stage.app.world().resource::<AppTypeRegistry>().read();
    let ours = registry.iter().filter(|registration| {
        registration.contains::<ReflectComponent>() && !registration.contains::<ReflectResource>()
    });
    let ours = ours.map(|registration| registration.type_info().type_path());
    // They say how an entity was made, and are tested below, or are no part of a world.
    let internal = ["NodeInstances", "ScenePart", "CardOf", "CullingOverlay"];
    let missing: Vec<_> = ours
        .filter(|path| path.starts_with("bevy_gpu_culling") && !names.contains(*path))
        .filter(|path| !internal.iter().any(|name| path.ends_with(name)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// What a mesh entity of the file looks like.
fn red(files: &AssetServer) -> MeshMaterial3d<StandardMaterial> {
    MeshMaterial3d(files.load("file.glb#Material0/std"))
}

/// An entity with everything that Bevy and the plugin give it.
#[test]
fn a_set_with_meshlets_and_levels_of_files_is_drawn_again() {
    let folder = folder();
    let mut first = stage(folder.path());
    let files = server(&first);
    let log = Log::start();
    let field = GpuInstances(files.load("field.instances"));
    let meshlets: Handle<MeshletMesh> = files.load("torus.meshlets");
    let lods: Handle<MeshLods> = files.load("torus.lods");
    let left = Transform::from_xyz(-3.0, 0.0, 0.0);
    let sets = [
        first.spawn((
            MeshletMesh3d(meshlets.clone()),
            red(&files),
            field.clone(),
            left,
        )),
        first.spawn((
            Mesh3d(files.load(TORUS)),
            MeshLods3d(lods.clone()),
            InstanceVisibilityRange(VisibilityRange::abrupt(0.0, 20.0)),
            red(&files),
            field.clone(),
        )),
    ];
    for handle in [field.0.untyped(), meshlets.untyped(), lods.untyped()] {
        wait_for(&mut first, handle);
    }
    wait_for(&mut first, red(&files).0);
    let expected = first.picture();
    let text = save(&first, sets);
    assert_eq!(log.lines(), Vec::<String>::new());

    let mut second = stage(folder.path());
    load(&mut second, folder.path(), &text, &sets);
    let files = server(&second);
    wait_for(&mut second, files.load::<MeshletMesh>("torus.meshlets"));
    wait_for(&mut second, files.load::<MeshLods>("torus.lods"));
    wait_for(&mut second, red(&files).0);
    assert_same_picture("saved-files", &second.picture(), &expected);
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// Meshlets and levels that are made at run time cannot be saved, so they are made again.
#[test]
fn what_was_built_is_built_again() {
    let _log = Log::start();
    let folder = folder();
    let mut first = stage(folder.path());
    let files = server(&first);
    let mesh: Handle<Mesh> = files.load(TORUS);
    let field = GpuInstances(files.load("field.instances"));
    let settings = LodSettings {
        max_levels: 2,
        ..default()
    };
    let right = Transform::from_xyz(3.0, 0.0, 0.0);
    let spawn = |stage: &mut Stage| {
        [
            stage.spawn((
                Mesh3d(mesh.clone()),
                BuildMeshlets::default(),
                red(&files),
                field.clone(),
            )),
            stage.spawn((
                Mesh3d(mesh.clone()),
                BuildLods(settings),
                InstanceLods {
                    fade: 0.25,
                    ..default()
                },
                red(&files),
                field.clone(),
                right,
            )),
        ]
    };
    let sets = spawn(&mut first);
    let built = |[meshlets, levels]: [Entity; 2]| {
        move |world: &mut World| {
            let lods = world.get::<InstanceLods>(levels);
            world.get::<MeshletMesh3d>(meshlets).is_some()
                && world.get::<BuildMeshlets>(meshlets).is_none()
                && world.get::<BuildLods>(levels).is_none()
                && lods.is_some_and(|lods| lods.levels.len() == 2 && lods.fade == 0.25)
        }
    };
    wait(&mut first, "the builds", built(sets));
    wait_for(&mut first, field.0.clone());
    wait_for(&mut first, red(&files).0);
    let expected = first.picture();
    let text = save(&first, sets);
    // A clone shares what was built, and nothing is built again.
    let of = |stage: &mut Stage, entity| {
        let entity = stage.entity(entity);
        (
            entity.get::<MeshletMesh3d>().cloned(),
            entity.get::<InstanceLods>().cloned(),
        )
    };
    for set in sets {
        let clone = first.entity(set).clone_and_spawn();
        first.update(3);
        assert_eq!(of(&mut first, clone), of(&mut first, set));
        assert!(!first.entity(clone).contains::<BuildMeshlets>());
        assert!(!first.entity(clone).contains::<BuildLods>());
    }

    let mut second = stage(folder.path());
    let loaded = load(&mut second, folder.path(), &text, &sets);
    wait(&mut second, "the builds", built([loaded[0], loaded[1]]));
    let files = server(&second);
    wait_for(&mut second, red(&files).0);
    assert!(of(&mut second, loaded[0]).0.is_some());
    assert_same_picture("built-again", &second.picture(), &expected);
    assert!(second.report().meshlets.tested > 0);
}

/// All entities below one, and itself.
fn family(stage: &Stage, root: Entity) -> Vec<Entity> {
    let world = stage.app.world();
    let mut all = vec![root];
    let mut at = 0;
    while let Some(&entity) = all.get(at) {
        let children = world.get::<Children>(entity).into_iter().flatten();
        all.extend(children.copied());
        at += 1;
    }
    all
}

/// The parts that were saved give way to those that the scene spawns.
#[test]
fn the_parts_of_a_scene_are_there_once() {
    let _log = Log::start();
    let folder = folder();
    let mut first = stage(folder.path());
    let files = server(&first);
    let scene: Handle<WorldAsset> = files.load("tree.glb#Scene0");
    let field = GpuInstances(files.load("field.instances"));
    let root = first.spawn((InstanceScene(scene.clone()), field.clone()));
    wait_for(&mut first, scene);
    wait_for(&mut first, field.0);
    let expected = first.picture();
    let all = family(&first, root);
    assert_eq!(all.len(), 5);
    let text = save(&first, all.iter().copied());

    let mut second = stage(folder.path());
    let loaded = load(&mut second, folder.path(), &text, &all);
    let files = server(&second);
    wait_for(&mut second, files.load::<WorldAsset>("tree.glb#Scene0"));
    wait_for(&mut second, files.load::<InstanceSet>("field.instances"));
    assert_same_picture("saved-scene", &second.picture(), &expected);
    assert_eq!(family(&second, loaded[0]).len(), 5);

    // The same with a clone of the root and its children.
    let mut cloner = bevy::ecs::entity::EntityCloner::build_opt_out(first.app.world_mut());
    cloner.linked_cloning(true);
    let mut cloner = cloner.finish();
    let clone = first.app.world_mut().spawn_empty().id();
    cloner.clone_entity(first.app.world_mut(), root, clone);
    first.update(2);
    assert_eq!(family(&first, clone).len(), 5);
    first.app.world_mut().despawn(root);
    assert_same_picture("cloned-scene", &first.picture(), &expected);
}

/// The offset of a glTF set is the loader's turn of its mesh, whatever the app does with the
/// entity's transform.
#[test]
fn sets_of_gltf_files_keep_their_offsets() {
    let _log = Log::start();
    let folder = folder();
    let mut stage = stage(folder.path());
    let files = server(&stage);
    let turned = |settings: &mut GltfLoaderSettings| {
        settings.convert_coordinates = Some(GltfConvertCoordinates {
            rotate_meshes: true,
            ..default()
        });
    };
    // A file is reloaded with the settings of its handle.
    let builder = files.load_builder().with_settings(turned);
    let file: Handle<Gltf> = builder.load("file.glb");
    wait_for(&mut stage, file.clone());
    let scene: Handle<WorldAsset> = files.load("file.glb#Scene0");
    let root = stage.spawn(WorldAssetRoot(scene.clone()));
    wait_for(&mut stage, scene);
    let sets = |world: &mut World| -> Vec<Entity> {
        let mut query = world.query_filtered::<Entity, With<GpuInstances>>();
        query.iter(world).collect()
    };
    wait(&mut stage, "the sets", |world| sets(world).len() == 2);
    let expected = stage.picture();
    let before = sets(stage.app.world_mut());

    files.reload("file.glb");
    let mut now = Vec::new();
    for _ in 0..400 {
        stage.update(1);
        now = sets(stage.app.world_mut());
        if now.iter().all(|set| !before.contains(set)) {
            break;
        }
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    let is_new = now.iter().all(|set| !before.contains(set));
    assert!(now.len() == 2 && is_new, "{now:?} instead of {before:?}");
    wait_for(&mut stage, file.clone());
    assert_same_picture("reloaded", &stage.picture(), &expected);

    // Clones of sets that have moved: what they show lies at the originals' places.
    let originals = sets(stage.app.world_mut());
    for set in &originals {
        stage
            .entity(*set)
            .get_mut::<Transform>()
            .unwrap()
            .translation
            .x += 3.0;
    }
    let moved = stage.picture();
    assert!(different_pixels("moved", &moved, &expected).is_err());
    for set in &originals {
        stage.entity(*set).clone_and_spawn();
    }
    assert_same_picture("cloned", &stage.picture(), &moved);
    let clones = sets(stage.app.world_mut());
    let clones = clones.into_iter().filter(|set| !originals.contains(set));
    for clone in clones.collect::<Vec<_>>() {
        let (offset, place) = {
            let clone = stage.entity(clone);
            let place = clone.get::<Transform>().copied();
            (clone.get::<InstanceOffset>().copied(), place)
        };
        assert!(originals.iter().any(|set| {
            let set = stage.entity(*set);
            set.get::<InstanceOffset>().copied() == offset
                && set.get::<Transform>().copied() == place
        }));
        stage.app.world_mut().despawn(clone);
    }

    // The file stays loaded: a saved world does not say which settings a file was loaded with.
    let all = family(&stage, root);
    let text = save(&stage, all.iter().copied());
    stage.app.world_mut().despawn(root);
    let loaded = load(&mut stage, folder.path(), &text, &all);
    assert!(!loaded.is_empty());
    assert_same_picture("saved-gltf", &stage.picture(), &moved);
    drop(file);
}

/// Everything that the parts of a glTF scene name is found in the file by an app that has not
/// loaded it.
#[test]
fn sets_of_gltf_files_are_loaded_by_another_app() {
    let folder = folder();
    let mut first = stage(folder.path());
    let files = server(&first);
    let log = Log::start();
    let scene: Handle<WorldAsset> = files.load("file.glb#Scene0");
    let root = first.spawn(WorldAssetRoot(scene.clone()));
    wait_for(&mut first, scene);
    let sets = |world: &mut World| {
        let mut query = world.query::<&GpuInstances>();
        query.iter(world).count()
    };
    wait(&mut first, "the sets", |world| sets(world) == 2);
    let expected = first.picture();
    let all = family(&first, root);
    let text = save(&first, all.iter().copied());

    let mut second = stage(folder.path());
    // First of all: a path that asks for the file has to be one of the file's own labels, while
    // later ones find what the file has brought.
    let own = "file.glb#Material0 (mirrored instances)/std";
    assert!(text.contains(own), "{text}");
    let own: Handle<StandardMaterial> = server(&second).load(own);
    wait_for(&mut second, own.clone());
    let loaded = load(&mut second, folder.path(), &text, &all);
    assert_eq!(loaded.len(), all.len());
    assert_same_picture("saved-gltf-elsewhere", &second.picture(), &expected);
    assert_eq!(log.lines(), Vec::<String>::new());
}
