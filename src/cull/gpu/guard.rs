//! GPU errors as values.
//!
//! wgpu reports an error to the innermost error scope of its kind, else to the device's handler,
//! and Bevy's handler ends the app. So everything that the adapter may refuse is created inside
//! [`guarded`].
//!
//! What the queue stages for a write is not: if there is no memory for it, wgpu loses the device.

use crate::cull::CullError;
use core::{
    future::Future,
    task::{Context, Poll, Waker},
};
use wgpu::{Device, Error, ErrorFilter};

/// The kinds of errors, outermost scope first. A scope catches its own kind only.
const KINDS: [ErrorFilter; 3] = [
    ErrorFilter::Validation,
    ErrorFilter::OutOfMemory,
    ErrorFilter::Internal,
];

/// [`CullError::Gpu::message`] of a device that has no memory.
pub(crate) const OUT_OF_MEMORY: &str = "out of memory";

/// Runs `work`. Returns [`CullError::Gpu`] for `what` if the device reports an error of any kind
/// meanwhile.
///
/// A lost device reports none. In a browser, scopes answer later, when nothing waits for them any
/// more: there, `work` runs without scopes, and its errors go to the device's handler.
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
    #[cfg(feature = "testing")]
    if super::faults::has(super::faults::Fault::Refused, what) {
        let source = "injected".into();
        first = Some(Error::OutOfMemory { source });
    }
    for scope in scopes.into_iter().rev() {
        let error = now(scope.pop()).flatten();
        first = first.or(error);
    }
    match first {
        Some(error) => Err(refused(what, &error)),
        None => Ok(made),
    }
}

/// The device's error as a [`CullError`].
pub(crate) fn refused(what: &'static str, error: &Error) -> CullError {
    let message = match error {
        Error::OutOfMemory { .. } => OUT_OF_MEMORY.into(),
        Error::Validation { description, .. } => one_line(description),
        Error::Internal { description, .. } => format!("internal error: {}", one_line(description)),
    };
    CullError::Gpu { what, message }
}

/// The text on one line: wgpu puts each cause on a separate, indented line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The value of a future that is ready at once, as error scopes of native backends are; else
/// `None`.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match core::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
