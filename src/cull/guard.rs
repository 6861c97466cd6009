//! GPU errors as values, and sizes that the device can bind.
//!
//! wgpu reports an error to the innermost error scope of its kind, else to the device's handler, and Bevy's handler
//! ends the app. So whatever the adapter may refuse is created inside [`guarded`].

use crate::cull::{CullError, pages::binding_limit};
use core::{
    future::Future,
    task::{Context, Poll, Waker},
};
use wgpu::{Device, Error, ErrorFilter, Limits};

/// The kinds of errors, outermost scope first. A scope catches its own kind only.
const KINDS: [ErrorFilter; 3] = [
    ErrorFilter::Validation,
    ErrorFilter::OutOfMemory,
    ErrorFilter::Internal,
];

/// Runs `work`. Returns [`CullError::Gpu`] for `what` if the device reports an error of any kind meanwhile.
///
/// A lost device reports none. In a browser, scopes answer later, when nobody waits any more: there, `work` runs without
/// them, and its errors are the device's.
pub(crate) fn guarded<T>(
    device: &Device,
    what: &'static str,
    work: impl FnOnce() -> T,
) -> Result<T, CullError> {
    if cfg!(target_arch = "wasm32") {
        return Ok(work());
    }
    let scopes = KINDS.map(|kind| device.push_error_scope(kind));
    let made = work();
    // Scopes are popped in the reverse order.
    let mut first = None;
    for scope in scopes.into_iter().rev() {
        let error = now(scope.pop()).flatten();
        first = first.or(error);
    }
    match first {
        Some(error) => Err(refused(what, &error)),
        None => Ok(made),
    }
}

/// The device's error, as ours.
pub(crate) fn refused(what: &'static str, error: &Error) -> CullError {
    let message = match error {
        Error::OutOfMemory { .. } => "out of memory".into(),
        Error::Validation { description, .. } => one_line(description),
        Error::Internal { description, .. } => format!("internal error: {}", one_line(description)),
    };
    CullError::Gpu { what, message }
}

/// wgpu indents causes on lines of their own.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a future that is ready at once, as error scopes of native backends are; elsewhere `None`.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match core::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Size of a buffer that holds `bytes` and is bound as a whole: rounded up to 256, but not beyond what one storage
/// binding holds. That limit need not be a multiple of anything above 4.
pub(crate) fn buffer_size(bytes: u64, limits: &Limits) -> u64 {
    within(bytes.next_multiple_of(256), bytes, limits)
}

/// As [`buffer_size`], with room for a quarter more, so that a buffer that grows is not replaced every frame.
#[cfg(any(feature = "bevy", test))]
pub(crate) fn growing_size(bytes: u64, limits: &Limits) -> u64 {
    within((bytes + bytes / 4).next_multiple_of(256), bytes, limits)
}

fn within(wanted: u64, least: u64, limits: &Limits) -> u64 {
    wanted.min(binding_limit(limits)).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// wgpu's cap on desktop Vulkan and DX12: `i32::MAX` without its last two bits.
    fn limits(most: u64) -> Limits {
        Limits {
            max_storage_buffer_binding_size: most,
            max_buffer_size: u64::MAX,
            ..Limits::default()
        }
    }

    #[test]
    fn a_buffer_never_grows_beyond_what_can_be_bound() {
        let most = (1u64 << 31) - 4;
        let limits = limits(most);
        for bytes in [9_761_290 * 176, 12_201_611 * 176, most - 4, most] {
            for size in [buffer_size(bytes, &limits), growing_size(bytes, &limits)] {
                assert!((bytes..=most).contains(&size), "{size} for {bytes}");
                assert_eq!(size % 4, 0);
            }
        }
        assert_eq!(buffer_size(257, &limits), 512);
        assert_eq!(growing_size(1024, &limits), 1280);
    }

    #[test]
    fn errors_of_each_kind_say_what_was_refused() {
        let source = || Box::<dyn core::error::Error + Send + Sync>::from("cause");
        let text = |error: Error| refused("a buffer", &error).to_string();
        let memory = text(Error::OutOfMemory { source: source() });
        assert!(
            memory.contains("a buffer") && memory.contains("out of memory"),
            "{memory}"
        );
        let description = "Validation Error\n\nCaused by:\n  too large".to_owned();
        let invalid = text(Error::Validation {
            source: source(),
            description,
        });
        assert!(invalid.contains("Caused by: too large"), "{invalid}");
        let description = "driver".to_owned();
        let internal = text(Error::Internal {
            source: source(),
            description,
        });
        assert!(internal.contains("internal error: driver"), "{internal}");
    }
}
