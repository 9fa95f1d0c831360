//! `vice_capture_screen`: what the machine shows, as a picture.

use super::frame::Frame;
use super::prelude::*;
use crate::errors::ErrorCode;
use crate::tools::Picture;
use crate::tools::c64_shared::picture::output;
use crate::vice_client::{refused, result};

/// The tool.
#[derive(Debug)]
pub struct ViceCaptureScreen;

/// What is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Without the border.
    #[serde(default = "yes")]
    crop: bool,
    /// Of the VIC-II, on machines with two video chips.
    #[serde(default = "yes")]
    use_vic: bool,
    /// Write the PNG here too, below the workspace.
    output_path: Option<String>,
    /// Replace a file that is there.
    #[serde(default)]
    overwrite: bool,
    /// Milliseconds for the whole call.
    #[serde(default)]
    timeout_ms: Time,
}

/// What is said when pixels are missing.
const MISSING: &str = "this VICE does not send the last pixels of the border's last line; they repeat the one before";

impl Tool for ViceCaptureScreen {
    const NAME: &'static str = "vice_capture_screen";
    const DESCRIPTION: &'static str =
        "Show what the stopped C64 has on its screen, as PNG, and write it to a file below the workspace if asked.";
    const EFFECT: Effect = Effect { read_only: false, destructive: true, idempotent: true, open_world: true };
    type Params = Params;
    type Output = Picture;

    async fn run(context: &Context, params: Params) -> Result<Picture, ToolError> {
        let output = output(context, params.output_path.as_deref(), params.overwrite)?;
        let time = params.timeout_ms.get("timeout_ms", ErrorCode::ViceInvalidArgument)?;
        let envelope = context.vice().call("capture_display", json!({"use_vic": params.use_vic}), time).await?;
        if envelope.get("ok") != Some(&json!(true)) {
            return Err(refused(&envelope, ErrorCode::ViceCaptureFailed, "there is no picture"));
        }
        let frame = Frame::of(&result(&envelope)).map_err(|wrong| {
            ToolError::new(ErrorCode::ViceCaptureFailed, format!("the connector's frame cannot be used: {wrong}"))
                .hint("nothing was written; `retroscope vice-connector` gives frames that fit")
        })?;
        let picture = frame.picture(params.crop);
        let file = c64::graphics::encode(&picture, &frame.palette)?;
        let path = match output {
            Some((path, overwrite)) => Some(context.workspace()?.write_file(&path, &file.png, overwrite)?),
            None => None,
        };
        let mut notes = Vec::new();
        if frame.said != frame.inner.y {
            let who = if frame.corrected { "this tool" } else { "the connector" };
            notes.push(format!("VICE says y_offset {}, which is one row too low; {who} corrected it", frame.said));
        }
        // They are of the border, which a cropped picture has not.
        if frame.missing > 0 && !params.crop {
            notes.push(MISSING.to_owned());
        }
        let inner = frame.inner;
        let facts = json!({
            "mode": "vice_capture",
            "width": picture.width,
            "height": picture.height,
            "cropped": params.crop,
            "inner": {"x_offset": inner.x, "y_offset": inner.y, "width": inner.width, "height": inner.height},
            "palette_size": file.palette_size,
            "distinct_index_count": file.used_indices.len(),
            "used_indices": file.used_indices,
            "output_path": path.map(|path| path.display().to_string()),
            "notes": notes,
        });
        Ok(Picture { png: file.png, facts })
    }
}
