//! One request for entities that differ only in what they draw, for example the primitives of a
//! tree: instances are tested once, and listed once, for all of them.
//!
//! Entities share a request if they share the set, the transform, the views that see them, and
//! everything else that decides which instances are drawn in which order. Their spheres may differ:
//! then instances are tested with a sphere around all of them. It keeps a few more instances at the
//! borders of views, and shows nothing else, because it only rejects what none of the entities
//! would show. If levels of detail, or distances and sizes, are measured by the sphere, it must be
//! the same.

use crate::{
    cull::{BoundingSphere, CullRequest, ErrorRange, FurtherShape, SetId},
    render::offset::bits_of,
};
use bevy::{math::DVec3, platform::collections::HashMap};

/// The largest radius of a sphere around several, as a multiple of the largest of them. Entities
/// farther apart are tested on their own, which rejects more instances.
const MAX_GROWTH: f32 = 1.5;

/// The requests of a frame that others may join.
#[derive(Default)]
pub(super) struct Groups(HashMap<Place, Vec<Group>>);

/// A set and its transform. A set may be drawn at many places, but by few entities at each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    set: SetId,
    /// The bits of the transform.
    world_from_local: [u32; 12],
}

impl Place {
    fn of(request: &CullRequest) -> Self {
        Self {
            set: request.set,
            world_from_local: bits_of(&request.world_from_local),
        }
    }
}

/// A request that others may join.
#[derive(Clone, Copy)]
struct Group {
    /// Its index in the frame.
    request: usize,
    /// The largest radius of an entity's sphere.
    largest: f32,
    may_be_hidden: bool,
}

/// What decides, besides its request, which others an entity joins.
#[derive(Clone, Copy)]
pub(super) struct JoinRule {
    /// Whether views may hide its instances.
    pub may_be_hidden: bool,
    /// Whether instances are left out by the size of their spheres.
    pub has_min_size: bool,
}

/// The request that an entity is drawn by, and its shape there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestShape {
    /// Index of the request in the frame.
    pub request: usize,
    /// Index of the shape ([`Culler::shape_source`](crate::cull::Culler::shape_source)).
    pub shape: usize,
}

impl Groups {
    /// Starts a frame.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds what `new` draws to a request of `requests` that tests the same. If there is none, this
    /// returns `None`: the caller pushes `new`, and others may join it.
    pub fn join(
        &mut self,
        requests: &mut [CullRequest],
        new: &CullRequest,
        rule: JoinRule,
    ) -> Option<RequestShape> {
        let groups = self.0.entry(Place::of(new)).or_default();
        for group in &mut *groups {
            let Some(request) = requests.get_mut(group.request) else {
                continue;
            };
            if group.may_be_hidden != rule.may_be_hidden || !is_alike(request, new) {
                continue;
            }
            let largest = group.largest.max(new.sphere.radius);
            let Some(sphere) = common_sphere(request, new, largest, rule.has_min_size) else {
                continue;
            };
            (request.sphere, group.largest) = (sphere, largest);
            request.more.push(FurtherShape {
                shape: new.shape,
                coarser: new.coarser.clone(),
            });
            return Some(RequestShape {
                request: group.request,
                shape: request.more.len(),
            });
        }
        groups.push(Group {
            request: requests.len(),
            largest: new.sphere.radius,
            may_be_hidden: rule.may_be_hidden,
        });
        None
    }
}

/// Whether two requests at one place draw the same instances in the same order, apart from their
/// spheres.
fn is_alike(one: &CullRequest, other: &CullRequest) -> bool {
    let has_same_levels = match (&one.coarser, &other.coarser) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            let mut levels = one.iter().zip(&**other);
            one.len() == other.len() && levels.all(|(one, other)| one.error == other.error)
        }
        _ => false,
    };
    one.views == other.views
        && one.order == other.order
        && one.fade == other.fade
        && one.range == other.range
        && one.thin_below == other.thin_below
        && one.errors == other.errors
        && has_same_levels
}

/// The sphere with which the instances of both are tested; `None` if that shows something else, or
/// if it is too large.
fn common_sphere(
    one: &CullRequest,
    other: &CullRequest,
    largest: f32,
    has_min_size: bool,
) -> Option<BoundingSphere> {
    if one.sphere == other.sphere {
        return Some(one.sphere);
    }
    let is_measured = has_min_size
        || one.coarser.is_some()
        || one.thin_below > 0.0
        || one.errors != ErrorRange::default()
        || one.range.is_some_and(|range| range.of_centers);
    let sphere = around(one.sphere, other.sphere);
    (!is_measured && sphere.radius <= MAX_GROWTH * largest).then_some(sphere)
}

/// The sphere around two.
fn around(one: BoundingSphere, other: BoundingSphere) -> BoundingSphere {
    let (from, to) = (one.center.as_dvec3(), other.center.as_dvec3());
    let [a, b] = [one, other].map(|sphere| f64::from(sphere.radius));
    let distance = from.distance(to);
    if distance + b <= a {
        return one;
    }
    if distance + a <= b {
        return other;
    }
    let radius = (distance + a + b) / 2.0;
    let center: DVec3 = from + (to - from) * ((radius - a) / distance);
    // More than rounding may take away.
    let rounded = (radius + center.abs().max_element()) * 1e-6;
    BoundingSphere {
        center: center.as_vec3(),
        radius: (radius + rounded) as f32,
    }
}

#[cfg(test)]
mod tests;
