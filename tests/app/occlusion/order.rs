//! Systems of the app between Bevy's passes and the passes of the plugin.

use super::{
    Way,
    sequences::{build, stage},
};
use crate::scene::{SIZE, Stage};
use bevy::{
    core_pipeline::{
        Core3d, Core3dSystems,
        core_3d::{main_opaque_pass_3d, main_transparent_pass_3d},
    },
    pbr::main_transmissive_pass_3d,
    prelude::*,
    render::{
        RenderApp,
        render_resource::{
            Buffer, BufferDescriptor, BufferUsages, MapMode, PollType, TexelCopyBufferInfo,
            TexelCopyBufferLayout,
        },
        renderer::{RenderContext, RenderDevice, ViewQuery},
        view::ViewTarget,
    },
};
use bevy_gpu_culling::prelude::*;

/// Where the color of the camera is copied to: before the late draws, and after.
#[derive(Resource)]
struct Copies([Buffer; 2]);

fn copy<const AFTER: usize>(
    view: ViewQuery<&ViewTarget>,
    copies: Res<Copies>,
    mut context: RenderContext,
) {
    let texture = view.into_inner().main_texture();
    let layout = TexelCopyBufferLayout {
        offset: 0,
        bytes_per_row: Some(SIZE.x * 4),
        rows_per_image: None,
    };
    let into = TexelCopyBufferInfo {
        buffer: &copies.0[AFTER],
        layout,
    };
    let encoder = context.command_encoder();
    encoder.copy_texture_to_buffer(texture.as_image_copy(), into, texture.size());
}

fn add_copies(stage: &mut Stage) {
    let device = stage.app.world().resource::<RenderDevice>().clone();
    let buffers = [(); 2].map(|()| {
        device.create_buffer(&BufferDescriptor {
            label: Some("copy of the color"),
            size: u64::from(SIZE.x * SIZE.y * 4),
            usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
            mapped_at_creation: false,
        })
    });
    stage
        .app
        .sub_app_mut(RenderApp)
        .insert_resource(Copies(buffers))
        .add_systems(
            Core3d,
            (
                copy::<0>
                    .after(main_opaque_pass_3d)
                    .before(GpuCullingSystems::DrawLate),
                copy::<1>
                    .after(GpuCullingSystems::DrawLate)
                    .before(main_transmissive_pass_3d)
                    .before(main_transparent_pass_3d),
            )
                .in_set(Core3dSystems::MainPass),
        );
}

/// The copies of the last frame.
fn copies(stage: &mut Stage) -> [Vec<u8>; 2] {
    let world = stage.app.sub_app(RenderApp).world();
    let device = world.resource::<RenderDevice>();
    let copies = world.resource::<Copies>();
    copies.0.each_ref().map(|buffer| {
        let whole = buffer.slice(..);
        whole.map_async(MapMode::Read, |read| read.unwrap());
        device.poll(PollType::wait_indefinitely()).unwrap();
        let bytes = whole.get_mapped_range().unwrap().to_vec();
        buffer.unmap();
        bytes
    })
}

/// In the frame in which a wall is gone, all that was behind it is late.
#[test]
fn systems_after_the_late_draws_see_all_instances() {
    let [hiding, plain] = [Way::Forward, Way::Off].map(|way| {
        let mut stage = stage(None);
        add_copies(&mut stage);
        let actors = build(&mut stage);
        way.equip(&mut stage.entity(actors.camera), false);
        let eye = Transform::from_xyz(0.0, 0.5, 13.0).looking_at(Vec3::ZERO, Vec3::Y);
        let mut camera = stage.entity(actors.camera);
        camera.insert((Msaa::Off, eye));
        stage.update(6);
        let mut wall = stage.entity(actors.wall);
        wall.get_mut::<Transform>().unwrap().translation.x = 40.0;
        stage.update(1);
        copies(&mut stage)
    });
    let [before, after] = hiding;
    let differ = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a != b).count();
    let late = differ(&before, &after);
    assert!(late > 1000, "{late} bytes are late");
    assert_eq!(differ(&plain[0], &plain[1]), 0);
    assert_eq!(differ(&after, &plain[1]), 0);
}
