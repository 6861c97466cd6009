//! The picture: the camera's target without a window, and the PNG file.

use crate::Failure;
use bevy::{
    prelude::*,
    render::{
        render_resource::{TextureFormat, TextureUsages},
        view::screenshot::{Screenshot, ScreenshotCaptured},
    },
};
use image::{ImageFormat, RgbImage};
use std::{fs::OpenOptions, io::ErrorKind, path::Path};

/// An image of this size to draw to.
pub fn target(size: UVec2) -> Image {
    let mut image = Image::new_target_texture(size.x, size.y, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    // Only the renderer fills it, so no zeros are uploaded.
    image.data = None;
    image.copy_on_resize = false;
    image
}

/// Checks, before anything is drawn, that a PNG can be written there. Does not change what is
/// there.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let refuse = |reason: String| {
        Err(Failure::new(
            Failure::USAGE,
            format!("--out {}: {reason}", path.display()),
        ))
    };
    if path
        .extension()
        .is_none_or(|extension| !extension.eq_ignore_ascii_case("png"))
    {
        return refuse("the picture is a PNG file: its name must end in .png".into());
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => {
            drop(file);
            std::fs::remove_file(path).or_else(|error| refuse(error.to_string()))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match OpenOptions::new().write(true).open(path) {
                Ok(_) => Ok(()),
                Err(error) => refuse(error.to_string()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            refuse("there is no such folder".into())
        }
        Err(error) => refuse(error.to_string()),
    }
}

/// The picture, when the renderer has delivered it.
#[derive(Resource, Default)]
struct Captured(Option<Image>);

/// Asks for a picture of the next frame.
pub fn request(world: &mut World, target: Handle<Image>) {
    world.init_resource::<Captured>();
    world.spawn(Screenshot::image(target)).observe(
        |captured: On<ScreenshotCaptured>, mut keep: ResMut<Captured>| {
            keep.0 = Some(captured.image.clone());
        },
    );
}

/// Whether the picture that was asked for is there.
pub fn is_there(world: &World) -> bool {
    world
        .get_resource::<Captured>()
        .is_some_and(|captured| captured.0.is_some())
}

/// Takes the picture that was asked for, or says why there is none.
pub fn take(world: &mut World) -> Result<RgbImage, String> {
    let picture = world
        .get_resource_mut::<Captured>()
        .and_then(|mut captured| captured.0.take())
        .ok_or("the renderer gave no picture")?;
    let picture = picture
        .try_into_dynamic()
        .map_err(|error| error.to_string())?;
    // The alpha channel has no meaning here.
    Ok(picture.to_rgb8())
}

/// Writes the picture.
pub fn save(world: &mut World, path: &Path) -> Result<(), Failure> {
    let fail = |reason: String| {
        Failure::new(
            Failure::WORK,
            format!("cannot write {}: {reason}", path.display()),
        )
    };
    take(world)
        .map_err(fail)?
        .save_with_format(path, ImageFormat::Png)
        .map_err(|error| fail(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(path: &Path) -> String {
        let failure = check_writable(path).expect_err("must be refused");
        assert_eq!(failure.code, Failure::USAGE);
        failure.message
    }

    #[test]
    fn paths_are_checked_and_left_as_they_were() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("new.png");
        assert!(check_writable(&path).is_ok());
        assert!(!path.exists());
        std::fs::write(&path, "old")?;
        assert!(check_writable(&path).is_ok());
        assert_eq!(std::fs::read_to_string(&path)?, "old");
        Ok(())
    }

    #[test]
    fn paths_that_cannot_be_a_png_are_refused() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        assert!(reason(&folder.path().join("absent/a.png")).contains("no such folder"));
        assert!(reason(&folder.path().join("a.jpg")).contains(".png"));
        assert!(reason(folder.path()).contains(".png"));
        let directory = folder.path().join("d.png");
        std::fs::create_dir(&directory)?;
        assert!(!reason(&directory).is_empty());
        Ok(())
    }
}
