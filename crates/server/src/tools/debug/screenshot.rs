//! `screenshot`: shows the window of the program.

use super::prelude::*;

/// The tool.
#[derive(Debug)]
pub struct Screenshot;

impl Tool for Screenshot {
    const NAME: &'static str = "screenshot";
    const DESCRIPTION: &'static str = "Take a screenshot: a picture (PNG) of the program's window, to see what \
         the game shows, for instance menu or play. Large windows are scaled down to 1,568 pixels; the text \
         beside it gives the true size.";
    const EFFECT: Effect = Effect::READS;
    type Params = commands::Screenshot;
    type Output = Picture;

    async fn run(context: &Context, params: Self::Params) -> Result<Self::Output, ToolError> {
        let reply = context.agent().call(params).await?;
        let shown = picture::fit(&reply.png_base64.0, limits::MAX_PICTURE_SIDE)?;
        let mut facts = serde_json::to_value(&reply).map_err(|error| {
            ToolError::new(ErrorCode::ServerFault, format!("the answer cannot be written: {error}"))
        })?;
        if let Some(facts) = facts.as_object_mut() {
            facts.remove("png_base64");
            facts.insert("shown_width".to_owned(), shown.width.into());
            facts.insert("shown_height".to_owned(), shown.height.into());
        }
        Ok(Picture { png: shown.png, facts })
    }
}
