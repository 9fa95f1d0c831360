//! `define_c64_text`: marks a text in Ghidra.

use super::decode_c64_text::read_length;
use super::prelude::*;
use crate::ghidra::Answer;
use c64::text::Length;

/// The tool.
#[derive(Debug)]
pub struct DefineC64Text;

/// Which text, and how to mark it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Program open in Ghidra.
    program: String,
    /// First address, `"RAM:0840"`.
    start: String,
    /// Bytes to read; needed with `terminator` and `prefix_size`.
    max_length: Option<i64>,
    /// Name to give the text.
    label: Option<String>,
    /// Namespace of the name, `"C64"`.
    namespace: Option<String>,
    /// What stands in the plate comment before the decoded text.
    comment: Option<String>,
    /// Only say what would change (default); false changes the program.
    #[serde(default = "yes")]
    dry_run: bool,
    #[serde(flatten)]
    text: TextParams,
}

const fn yes() -> bool {
    true
}

/// What was decoded, and what Ghidra answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Defined {
    /// The program.
    program: String,
    /// First address of the text.
    start: String,
    /// Last address of the text.
    end: String,
    /// Whether nothing was changed.
    dry_run: bool,
    /// The text.
    decoded: DecodedView,
    /// What Ghidra did or would do.
    ghidra: Answer,
}

impl Tool for DefineC64Text {
    const NAME: &'static str = "define_c64_text";
    const DESCRIPTION: &'static str = "Define C64 text in a program in Ghidra: its bytes become data, with the decoded text \
         in a plate comment. dry_run (default) changes nothing; existing code or data is never cleared.";
    const EFFECT: Effect = Effect { read_only: false, destructive: false, idempotent: true, open_world: true };
    const BRIEF: Option<&'static [&'static str]> = Some(&["tokens"]);
    type Params = Params;
    type Output = Defined;

    async fn run(context: &Context, params: Params) -> Result<Defined, ToolError> {
        not_blank("program", &params.program)?;
        for (name, value) in [("label", &params.label), ("namespace", &params.namespace), ("comment", &params.comment)]
        {
            if let Some(value) = value {
                not_blank(name, value)?;
            }
        }
        let start = Address::parse("start", &params.start)?;
        let options = params.text.options()?;
        let length = match (params.max_length, options.length) {
            (Some(length), _) => read_length("max_length", length)?,
            (None, Length::Fixed(length)) => read_length("length", i64::try_from(length).unwrap_or(i64::MAX))?,
            (None, _) => return Err(invalid("max_length is required for terminated or prefixed text")),
        };
        if let Length::Fixed(wanted) = options.length
            && wanted > length
        {
            return Err(invalid(format!("fixed length {wanted} exceeds source boundary {length}")));
        }
        let bytes = context.ghidra().read_memory(&params.program, &params.start, length).await?;
        let text = c64::text::decode(&bytes, &options)?;
        if text.consumed.is_empty() {
            return Err(invalid("the text has no bytes, so there is nothing to define"));
        }
        let end = start.plus(text.consumed.len() - 1);
        let spoken = format!("C64 {}: {}", options.encoding.word(), text.lossless);
        let mut region = json!({
            "kind": "contiguous",
            "start": params.start,
            "end": end,
            "type_name": "byte",
            "clear_conflicts": false,
            "plate_comment": match &params.comment {
                Some(comment) => format!("{comment}\n{spoken}"),
                None => spoken,
            },
        });
        for (key, value) in [("name", &params.label), ("namespace", &params.namespace)] {
            if let (Some(value), Some(region)) = (value, region.as_object_mut()) {
                region.insert(key.to_owned(), value.as_str().into());
            }
        }
        let ghidra = context.ghidra().apply_data_regions(&params.program, json!([region]), params.dry_run).await?;
        let source = json!({"kind": "ghidra", "program": params.program, "start": params.start, "max_length": length});
        let decoded = DecodedView::new(context, &text, source, params.text.configuration(&options), 0, Show::All)?;
        Ok(Defined { end, decoded, ghidra, program: params.program, start: params.start, dry_run: params.dry_run })
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::Caller;
    use serde_json::json;

    #[tokio::test]
    async fn bad_input_is_named_before_ghidra_is_asked() {
        let with = |more: serde_json::Value| {
            let mut arguments = json!({"program": "game", "start": "RAM:0840", "length": 5});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        let caller = Caller::new();
        for (arguments, words) in [
            (with(json!({"program": ""})), "program must not be blank"),
            (with(json!({"label": " "})), "label must not be blank"),
            (with(json!({"start": "here"})), "hexadecimal offset"),
            (with(json!({"max_length": 3})), "fixed length 5 exceeds source boundary 3"),
            (with(json!({"length": 1_048_577})), "must not exceed 1048576"),
            (json!({"program": "game", "start": "0840", "terminator": 0}), "max_length is required"),
            (with(json!({"terminator": 0})), "exactly one length mode"),
        ] {
            let error = caller.refused("define_c64_text", arguments.clone()).await;
            assert_eq!(error.code.word(), "invalid_arguments");
            assert!(error.line().contains(words), "{arguments}: {error}");
        }
        let error = caller.refused("define_c64_text", with(json!({}))).await;
        assert_eq!(error.code.word(), "ghidra_transport_failure");
    }
}
