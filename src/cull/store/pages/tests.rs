use super::*;

#[test]
fn pages_are_whole_blocks_within_the_binding() {
    let mut limits = wgpu::Limits {
        max_storage_buffer_binding_size: 128 << 20,
        ..Default::default()
    };
    assert_eq!(page_limit(&limits), Ok(1 << 23));
    limits.max_storage_buffer_binding_size = (1 << 31) - 4;
    limits.max_buffer_size = u64::MAX;
    assert_eq!(page_limit(&limits), Ok((1 << 27) - BLOCK));
    limits.max_storage_buffer_binding_size = u64::MAX;
    assert_eq!(page_limit(&limits), Ok(1 << 27));
    limits.max_storage_buffer_binding_size = 16383;
    assert!(matches!(
        page_limit(&limits),
        Err(CullError::BindingTooSmall {
            limit: 16383,
            needed: 16384
        })
    ));
}
