//! What the device can bind.

use wgpu::Limits;

/// Size of the largest storage binding, in bytes.
pub(crate) fn binding_limit(limits: &Limits) -> u64 {
    limits
        .max_storage_buffer_binding_size
        .min(limits.max_buffer_size)
}

/// Size of a buffer that holds `bytes` and is bound whole: rounded up to 256 bytes, but not beyond
/// what one storage binding holds. That limit need not be a multiple of anything above 4.
pub(crate) fn buffer_size(bytes: u64, limits: &Limits) -> u64 {
    within(bytes.next_multiple_of(256), bytes, limits)
}

/// Same as [`buffer_size`], plus a quarter, so that a buffer that grows is not replaced every
/// frame.
#[cfg(any(feature = "bevy", test))]
pub(crate) fn growing_size(bytes: u64, limits: &Limits) -> u64 {
    within((bytes + bytes / 4).next_multiple_of(256), bytes, limits)
}

/// `workgroups` in x and y, at most `limit` in x.
pub(crate) fn dispatch_2d(workgroups: u32, limit: u32) -> (u32, u32) {
    let width = workgroups.min(limit).max(1);
    (width, workgroups.div_ceil(width))
}

fn within(wanted: u64, min: u64, limits: &Limits) -> u64 {
    wanted.min(binding_limit(limits)).max(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// wgpu's cap on desktop Vulkan and DX12: `i32::MAX` without its last two bits.
    fn limits(max: u64) -> Limits {
        Limits {
            max_storage_buffer_binding_size: max,
            max_buffer_size: u64::MAX,
            ..Limits::default()
        }
    }

    #[test]
    fn a_buffer_never_grows_beyond_what_can_be_bound() {
        let max = (1u64 << 31) - 4;
        let limits = limits(max);
        for bytes in [9_761_290 * 176, 12_201_611 * 176, max - 4, max] {
            for size in [buffer_size(bytes, &limits), growing_size(bytes, &limits)] {
                assert!((bytes..=max).contains(&size), "{size} for {bytes}");
                assert_eq!(size % 4, 0);
            }
        }
        assert_eq!(buffer_size(257, &limits), 512);
        assert_eq!(growing_size(1024, &limits), 1280);
    }
}
