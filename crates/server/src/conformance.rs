//! Fixture tools that the official conformance suite calls by these names. They run on the router, the transport and the
//! error path of the real tools; what is declared nowhere (resources, prompts, sampling, …) has no fixture.

use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::{Answer, Effect, Entry, Group, Output, Tool};
use rmcp::model::{ContentBlock, ResourceContents};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

/// The group; listed in the profile `full` too, because the suite looks there.
pub const GROUP: Group = Group {
    name: "conformance",
    purpose: "Fixtures of the conformance suite.",
    files: false,
    tools: &[
        Entry::of::<SimpleText>(),
        Entry::of::<Image>(),
        Entry::of::<Audio>(),
        Entry::of::<Embedded>(),
        Entry::of::<Mixed>(),
        Entry::of::<Failing>(),
        Entry::of::<WithProgress>(),
        Entry::of::<Quiet>(),
    ],
};

/// A PNG of one red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// A WAV file without a sample: RIFF header, `fmt ` (PCM, mono, 8 kHz, 8 bit), empty `data`.
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Content(Vec<ContentBlock>);

impl Output for Content {
    fn schema() -> Option<Map<String, Value>> {
        None
    }

    fn answer(self) -> Result<Answer, ToolError> {
        Ok(Answer::Content(self.0))
    }
}

macro_rules! fixture {
    ($tool:ident, $name:literal, |$context:ident| $body:expr) => {
        struct $tool;

        impl Tool for $tool {
            const NAME: &'static str = $name;
            const DESCRIPTION: &'static str = "A fixture of the conformance suite.";
            const EFFECT: Effect = Effect::READS;
            type Params = Nothing;
            type Output = Content;

            async fn run($context: &Context, _params: Nothing) -> Result<Content, ToolError> {
                $body
            }
        }
    };
}

fixture!(SimpleText, "test_simple_text", |_context| text("This is a simple text response for testing."));
fixture!(Image, "test_image_content", |_context| Ok(Content(vec![ContentBlock::image(PIXEL, "image/png")])));
fixture!(Audio, "test_audio_content", |_context| Ok(Content(vec![ContentBlock::audio(SILENCE, "audio/wav")])));
fixture!(Embedded, "test_embedded_resource", |_context| Ok(Content(vec![ContentBlock::resource(
    ResourceContents::text("This is an embedded resource content.", "test://embedded-resource")
)])));
fixture!(Mixed, "test_multiple_content_types", |_context| {
    let resource = ResourceContents::text("{\"test\":\"data\",\"value\":123}", "test://mixed-content-resource")
        .with_mime_type("application/json");
    Ok(Content(vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image(PIXEL, "image/png"),
        ContentBlock::resource(resource),
    ]))
});
fixture!(Failing, "test_error_handling", |_context| Err(ToolError::new(
    ErrorCode::ServerFault,
    "This tool intentionally returns an error for testing"
)));
fixture!(WithProgress, "test_tool_with_progress", |context| {
    for done in [0.0, 50.0, 100.0] {
        context.progress(done, Some(100.0), "working");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    text("done")
});
fixture!(Quiet, "test_logging_tool", |_context| text("Nothing was logged, since nobody asked for it."));

fn text(words: &str) -> Result<Content, ToolError> {
    Ok(Content(vec![ContentBlock::text(words)]))
}
