//! Pictures of the program's window. Taking one may take its time, so that it is done on a thread of its own.

use super::{Engine, refused};
use crate::platform::{Picture, Platform, PlatformError, ScreenshotJob};
use crate::reply::{Outcome, ReplyTo};
use base::limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use wire::commands::{Screenshot, ScreenshotReply};
use wire::{AgentError, Bytes, ErrorCode, Live, Reply};

/// How many pictures are being taken.
#[derive(Clone, Default)]
pub(super) struct Shots(Arc<AtomicUsize>);

/// One of them; counted until it is dropped.
struct Shot(Arc<AtomicUsize>);

impl Shots {
    fn start(&self) -> Option<Shot> {
        let shot = Shot(Arc::clone(&self.0));
        (self.0.fetch_add(1, Ordering::AcqRel) < limits::MAX_SCREENSHOTS_AT_ONCE).then_some(shot)
    }
}

impl Drop for Shot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl<P: Platform> Engine<P> {
    pub(super) fn screenshot(&mut self, params: &Screenshot, reply: ReplyTo) {
        match self.begin_screenshot(params) {
            Ok((job, shot)) => {
                let live = self.live();
                // When no thread can be had the reply is dropped, which answers it.
                drop(thread::Builder::new().name("screenshot".to_owned()).spawn(move || {
                    reply.send(take(job, live));
                    drop(shot);
                }));
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    fn begin_screenshot(&mut self, params: &Screenshot) -> Result<(ScreenshotJob, Shot), AgentError> {
        self.alive()?;
        let job = self.platform.screenshot(params.title.as_deref()).map_err(failed)?;
        let shot = self.shots.start().ok_or_else(|| {
            let most = limits::MAX_SCREENSHOTS_AT_ONCE;
            AgentError::new(ErrorCode::Busy, format!("{most} pictures are being taken already"))
                .hint("try again when one is done")
        })?;
        Ok((job, shot))
    }
}

fn failed(error: PlatformError) -> AgentError {
    refused(error, "taking a screenshot")
}

fn take(job: ScreenshotJob, live: Live) -> Outcome {
    let picture = job().map_err(failed)?;
    let png = encode(&picture).map_err(|error| {
        AgentError::new(ErrorCode::Internal, format!("the picture could not be written as PNG: {error}"))
    })?;
    Ok(Reply::Screenshot(ScreenshotReply {
        png_base64: Bytes(png),
        width: picture.width,
        height: picture.height,
        title: picture.title,
        method: picture.method.to_owned(),
        live,
    }))
}

fn encode(picture: &Picture) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.rgb)?;
    writer.finish()?;
    Ok(bytes)
}
