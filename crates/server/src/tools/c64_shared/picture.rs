//! What all picture tools do around their decoding: palette, output file, picture and summary.

use super::invalid;
use super::source::Supplied;
use crate::context::Context;
use crate::errors::ToolError;
use crate::tools::Picture;
use c64::graphics::{Palette, Rgb, encode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

// A colour; checked by hand, so that messages name the entry.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
#[allow(missing_docs, reason = "its doc would be in every schema that has colours")]
#[schemars(extend("type" = ["string", "array"]))]
pub struct PaletteColor(Value);

/// What was asked for about the picture itself, checked.
#[derive(Debug)]
pub struct Wanted {
    palette: Palette,
    /// Where the file goes, and whether one that is there may go.
    output: Option<(PathBuf, bool)>,
}

impl Wanted {
    /// Checks palette and output.
    ///
    /// # Errors
    /// `invalid_arguments`, `file_exists`, and those of the workspace.
    pub fn check(
        context: &Context,
        palette: Option<&[PaletteColor]>,
        output_path: Option<&str>,
        overwrite: bool,
    ) -> Result<Self, ToolError> {
        let palette = match palette {
            None => Palette::default(),
            Some(colors) => {
                // Their number first: a long list is refused for its length.
                Palette::new(vec![Rgb::default(); colors.len()])?;
                Palette::new(colors.iter().enumerate().map(|(at, color)| rgb(at, &color.0)).collect::<Result<_, _>>()?)?
            }
        };
        Ok(Self { palette, output: output(context, output_path, overwrite)? })
    }

    /// Makes the file, writes it where it was wanted, and says what is in it.
    ///
    /// # Errors
    /// `output_too_large`, and those of the workspace.
    pub fn finish(
        &self,
        context: &Context,
        mode: &str,
        picture: &c64::graphics::Picture,
        sources: &[(&str, &Supplied)],
        more: Map<String, Value>,
    ) -> Result<Picture, ToolError> {
        let file = encode(picture, &self.palette)?;
        let path = match &self.output {
            Some((path, overwrite)) => Some(context.workspace()?.write_file(path, &file.png, *overwrite)?),
            None => None,
        };
        let mut facts = more;
        let sources_facts: Map<String, Value> =
            sources.iter().map(|(name, supplied)| ((*name).to_owned(), supplied.facts())).collect();
        for (key, value) in [
            ("mode", Value::from(mode)),
            ("width", picture.width.into()),
            ("height", picture.height.into()),
            ("sources", sources_facts.into()),
            ("palette_size", file.palette_size.into()),
            ("used_indices", file.used_indices.into()),
            ("unmapped_indices", file.unmapped_indices.into()),
            ("unmapped_pixel_count", file.unmapped_pixels.into()),
            ("output_path", path.map(|path| path.display().to_string()).into()),
        ] {
            facts.insert(key.to_owned(), value);
        }
        facts.entry("warnings").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(hint) = sources.iter().find_map(|(_, supplied)| supplied.hint.clone()) {
            facts.insert("hint".to_owned(), hint.into());
        }
        Ok(Picture { png: file.png, facts: facts.into() })
    }
}

/// Where a file is to go, and whether one that is there may go: checked before anything is done for it.
///
/// # Errors
/// As [`Wanted::check`].
pub fn output(
    context: &Context,
    output_path: Option<&str>,
    overwrite: bool,
) -> Result<Option<(PathBuf, bool)>, ToolError> {
    match output_path {
        None => Ok(None),
        Some(path) if path.trim().is_empty() => Err(invalid("output_path must be a nonblank path")),
        Some(path) => Ok(Some((context.workspace()?.new_file(&home_expanded(path), overwrite)?, overwrite))),
    }
}

fn rgb(at: usize, color: &Value) -> Result<Rgb, ToolError> {
    match color {
        Value::String(text) => Ok(Palette::parse(at, text)?),
        Value::Array(channels) if channels.len() == 3 => {
            let channels: Option<Vec<u8>> =
                channels.iter().map(|channel| channel.as_u64().and_then(|value| u8::try_from(value).ok())).collect();
            match channels.as_deref() {
                Some([red, green, blue]) => Ok([*red, *green, *blue]),
                _ => Err(invalid(format!("palette entry {at} channels must be integers from 0 to 255"))),
            }
        }
        _ => Err(invalid(format!("palette entry {at} must be a hex string or an [r, g, b] triple"))),
    }
}

/// `~` is the home folder, as in a shell.
fn home_expanded(path: &str) -> String {
    let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let home = ["HOME", "USERPROFILE"].into_iter().find_map(|name| std::env::var(name).ok());
    match (rest, home) {
        (Some(rest), Some(home)) => format!("{home}{rest}"),
        _ => path.to_owned(),
    }
}
