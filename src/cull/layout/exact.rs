//! Sums of products that every device computes alike: the twin of `exact_dot` in
//! `shaders/cull/far_first.wesl`.

use glam::Vec3;

/// The 12 highest bits of each number.
pub(crate) fn head(value: Vec3) -> Vec3 {
    Vec3::from(
        value
            .to_array()
            .map(|x| f32::from_bits(x.to_bits() & 0xffff_f000)),
    )
}

/// The dot product. Every product of the parts is exact, so a device that fuses a product with a
/// sum gets the same.
pub(crate) fn exact_dot(x: Vec3, y: Vec3) -> f32 {
    let (x_head, y_head) = (head(x), head(y));
    let (x_tail, y_tail) = (x - x_head, y - y_head);
    let parts = [x_tail * y_tail, x_head * y_tail, x_tail * y_head];
    let low = parts.iter().flat_map(Vec3::to_array);
    let low = low.reduce(|sum, part| sum + part).unwrap_or(0.0);
    let high = x_head * y_head;
    ((high.x + high.y) + high.z) + low
}
