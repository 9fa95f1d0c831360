//! Lines out of a byte stream, with a cap on their length.

use std::io::{self, BufRead};

/// Bytes kept of a line that is too long: enough to see which protocol it belongs to.
const START_BYTES: usize = 16;

/// Why no line came out.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The line is longer than allowed; it was read to its end and thrown away, so the next one can be read.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// Longest line allowed, in bytes.
        limit: usize,
        /// How the line begins: its first bytes.
        start: Vec<u8>,
    },
    /// The stream failed or ended in the middle of a line.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads newline-ended lines, keeping at most `limit` bytes of each.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: R,
    limit: usize,
    line: Vec<u8>,
}

impl<R: BufRead> LineReader<R> {
    /// A reader whose lines are at most `limit` bytes long, not counting the newline.
    pub fn new(inner: R, limit: usize) -> Self {
        Self { inner, limit, line: Vec::new() }
    }

    /// The next line without its newline (and without a carriage return before it); `None` at the end of the stream.
    /// Bytes after the last newline are no line.
    ///
    /// # Errors
    /// [`FrameError::TooLong`], after which reading can go on; [`FrameError::Io`].
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, FrameError> {
        self.line.clear();
        self.line.shrink_to(64 * 1024);
        // The start of the line, once it is known to be too long.
        let mut too_long: Option<Vec<u8>> = None;
        loop {
            let available = match self.inner.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if available.is_empty() {
                return Ok(None);
            }
            let newline = available.iter().position(|&byte| byte == b'\n');
            let (part, used) = match newline {
                Some(at) => (available.get(..at).unwrap_or_default(), at + 1),
                None => (available, available.len()),
            };
            if too_long.is_none() {
                if self.line.len() + part.len() <= self.limit {
                    self.line.extend_from_slice(part);
                } else {
                    too_long = Some(self.line.iter().chain(part).take(START_BYTES).copied().collect());
                    self.line = Vec::new();
                }
            }
            self.inner.consume(used);
            if newline.is_some() {
                break;
            }
        }
        if let Some(start) = too_long {
            return Err(FrameError::TooLong { limit: self.limit, start });
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }
}
