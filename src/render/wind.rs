//! Wind that bends the instances of a set.

use super::{components::GpuInstances, told::Told};
use bevy::{math::Vec4, prelude::*};

/// On a set: the wind bends instances about their origins, such as grass and trees. Gusts cross the
/// land, and each instance also trembles a little at its own time.
///
/// It works with any material whose vertex stage is Bevy's, in the picture, in prepasses with their
/// motion vectors, and in shadow maps. A vertex of an instance of scale 1 that lies `height` above
/// the instance's origin, along its Y axis, leans by up to `strength`; half as high, by a quarter
/// of that. Larger instances lean further. Normals stay as they are. The spheres by which instances
/// are culled, and a [`CullingRadius`](crate::render::CullingRadius), grow by as much as instances
/// lean.
///
/// Entities that draw the parts of one object, such as trunk and crown, need the same component
/// each. Rays and pointers hit meshes as they stand without wind. Sizes in pixels, from which
/// instances vanish or levels change, are of the larger spheres. Vertex shaders of your own get
/// the wind from `bevy_gpu_culling::draw_wind::position_to_world`. Sets that are drawn by meshlets
/// or from a `MeshUniform` per survivor
/// ([`InstanceMeshUniforms`](crate::render::InstanceMeshUniforms)) ignore the component, with a
/// warning.
///
/// ```
/// # use bevy::prelude::*;
/// # use bevy_gpu_culling::prelude::*;
/// # fn spawn(commands: &mut Commands, grass: (Mesh3d, MeshMaterial3d<StandardMaterial>),
/// #     set: Handle<InstanceSet>) {
/// let wind = Wind { strength: 0.4, height: 0.8, calm_beyond: 150.0, ..default() };
/// commands.spawn((grass, GpuInstances(set), wind));
/// # }
/// ```
#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component, Default, Clone, PartialEq)]
pub struct Wind {
    /// Where it blows to, in the world. The length does not matter. The default is X.
    pub direction: Vec3,
    /// How far what is as high as [`height`](Self::height) leans at most, in the instance's units.
    /// The default is 0.3; 0 bends nothing.
    pub strength: f32,
    /// The height of a plant above its origin, in the instance's units: behind an
    /// [`InstanceOffset`](crate::render::InstanceOffset). What is higher leans no further. The
    /// default is 1.
    pub height: f32,
    /// Gusts per second. The default is 0.25. With a multiple of one per hour, which is Bevy's
    /// [wrap period](bevy::time::Time::set_wrap_period), nothing jumps after an hour.
    pub frequency: f32,
    /// Distance from one gust to the next in the world. The default is 20.
    pub wavelength: f32,
    /// Distance from the camera beyond which nothing moves. From half of it on, instances move less
    /// and less. The default is infinite.
    pub calm_beyond: f32,
}

impl Default for Wind {
    fn default() -> Self {
        Self {
            direction: Vec3::X,
            strength: 0.3,
            height: 1.0,
            frequency: 0.25,
            wavelength: 20.0,
            calm_beyond: f32::INFINITY,
        }
    }
}

impl Wind {
    /// The largest strength.
    const MAX_STRENGTH: f32 = 1e12;

    /// What is wrong with a field: its name, its value, and what it must be.
    fn problem(&self) -> Option<(&'static str, String, &'static str)> {
        let is_above_0 = |number: f32| number > 0.0 && number.recip().is_finite();
        let finite = "finite";
        let positive = "above 0";
        if self.direction.try_normalize().is_none() {
            let value = self.direction.to_string();
            return Some(("direction", value, "finite and not zero"));
        }
        let fields = [
            (
                "strength",
                self.strength,
                "between 0 and 1e12",
                (0.0..=Self::MAX_STRENGTH).contains(&self.strength),
            ),
            (
                "height",
                self.height,
                "finite and above 0",
                self.height > 0.0 && self.height.recip() > 0.0 && reach_of(self).is_finite(),
            ),
            (
                "frequency",
                self.frequency,
                finite,
                self.frequency.is_finite(),
            ),
            (
                "wavelength",
                self.wavelength,
                positive,
                is_above_0(self.wavelength),
            ),
            (
                "calm_beyond",
                self.calm_beyond,
                positive,
                is_above_0(self.calm_beyond),
            ),
        ];
        let bad = fields.into_iter().find(|(_, _, _, is_good)| !is_good);
        bad.map(|(name, value, wanted, _)| (name, value.to_string(), wanted))
    }

    /// The wind, if it is valid and bends anything.
    fn checked(&self) -> Option<&Self> {
        (self.problem().is_none() && self.strength > 0.0).then_some(self)
    }

    /// How far a vertex moves at most, in the instance's units.
    pub(super) fn reach(&self) -> f32 {
        self.checked().map_or(0.0, reach_of)
    }

    /// The wind as a draw slot has it, if it bends anything.
    pub(super) fn in_slot(&self) -> Option<SlotWind> {
        let wind = self.checked()?;
        let direction = wind.direction.normalize().extend(wind.strength);
        let rates = Vec4::new(
            wind.height.recip(),
            wind.frequency,
            wind.wavelength.recip(),
            wind.calm_beyond.recip(),
        );
        Some(SlotWind {
            words: [direction, rates],
            reach: self.reach(),
        })
    }
}

/// The length of `bend` in `shaders/draw/wind.wesl` at most, for an instance of scale 1.
fn reach_of(wind: &Wind) -> f32 {
    wind.strength * (1.0 + 0.4 * wind.strength / wind.height)
}

/// The wind of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SlotWind {
    /// `DrawSlot::wind` in `shaders/draw/instance.wesl`: direction and strength; one over the
    /// height, frequency, one over the wavelength, and one over the distance that is calm.
    pub words: [Vec4; 2],
    /// [`Wind::reach`].
    pub reach: f32,
}

/// Winds of sets that were inserted or changed.
type ChangedWind = (Changed<Wind>, With<GpuInstances>);

/// Warns of winds that are not valid.
pub(super) fn warn_of_bad_winds(
    winds: Query<(Entity, &Wind), ChangedWind>,
    mut told: Local<Told<Entity>>,
) {
    for (entity, wind) in &winds {
        if let Some((field, value, wanted)) = wind.problem()
            && told.is_new(entity)
        {
            warn!("Wind on {entity} is ignored: {field} is {value}, which must be {wanted}");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn winds_that_are_not_valid_bend_nothing() {
        let good = Wind::default();
        assert!(good.problem().is_none() && good.in_slot().is_some());
        // 0.3 wide, and lower by 0.4 * 0.3 * 0.3.
        assert!((good.reach() - 0.336).abs() < 1e-6);
        let calm = Wind {
            strength: 0.0,
            ..good
        };
        assert!(calm.problem().is_none() && calm.in_slot().is_none());
        assert_eq!(calm.reach(), 0.0);
        type Change = fn(&mut Wind);
        let changes: [(&str, Change); 9] = [
            ("direction", |wind| wind.direction = Vec3::ZERO),
            ("direction", |wind| wind.direction.y = f32::NAN),
            ("strength", |wind| wind.strength = -1.0),
            ("strength", |wind| wind.strength = f32::INFINITY),
            ("height", |wind| wind.height = 0.0),
            ("height", |wind| wind.height = f32::INFINITY),
            ("frequency", |wind| wind.frequency = f32::NAN),
            ("wavelength", |wind| wind.wavelength = 0.0),
            ("calm_beyond", |wind| wind.calm_beyond = -3.0),
        ];
        for (field, change) in changes {
            let mut bad = good;
            change(&mut bad);
            assert_eq!(bad.problem().map(|(name, ..)| name), Some(field));
            assert_eq!((bad.in_slot(), bad.reach()), (None, 0.0), "{field}");
        }
    }

    #[test]
    fn directions_have_length_one_in_slots() {
        let wind = Wind {
            direction: Vec3::new(3.0, 0.0, -4.0),
            height: 0.5,
            ..default()
        };
        let slot = wind.in_slot().unwrap();
        assert_eq!(slot.words[0], Vec4::new(0.6, 0.0, -0.8, 0.3));
        assert_eq!(slot.words[1], Vec4::new(2.0, 0.25, 0.05, 0.0));
        assert_eq!(slot.reach, wind.reach());
    }
}
