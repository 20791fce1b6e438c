//! Captured log output, for tests that search it for what must not be logged.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// A buffer that collects all log output.
#[derive(Clone, Default)]
pub(crate) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Buffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Buffer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// A subscriber that writes all levels and all span events to the buffer.
pub(crate) fn subscriber(buffer: &Buffer) -> impl tracing::Subscriber + Send + Sync {
    // `tracing` caches the interest in a callsite. Without a global subscriber, a callsite that is first reached by a
    // test without a subscriber would stay disabled for all tests after it.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(buffer.clone())
        .finish()
}
