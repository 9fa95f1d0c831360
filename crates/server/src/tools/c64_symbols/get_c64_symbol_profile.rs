//! `get_c64_symbol_profile`: shows the names of the platform.

use super::profile::{self, ProfileView};
use crate::context::Context;
use crate::errors::ToolError;
use crate::tools::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The tool.
#[derive(Debug)]
pub struct GetC64SymbolProfile;

/// Nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

impl Tool for GetC64SymbolProfile {
    const NAME: &'static str = "get_c64_symbol_profile";
    const DESCRIPTION: &'static str = "List the C64's names: VIC-II, SID and CIA registers, KERNAL jump table, vectors, \
         zero page and workspace variables, register bits (equates), memory blocks; some 40,000 characters.";
    const EFFECT: Effect = Effect::READS;
    // Ghidra takes it whole, so a part of it would be no profile.
    const WHOLE: bool = true;
    const BRIEF: Option<&'static [&'static str]> = Some(&[]);
    type Params = Params;
    type Output = ProfileView;

    async fn run(_context: &Context, _params: Params) -> Result<ProfileView, ToolError> {
        Ok(profile::view())
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::c64_shared::tests::Caller;
    use serde_json::json;

    #[tokio::test]
    async fn the_profile_has_the_form_that_ghidra_takes() {
        // Whatever the bound of an answer is.
        let profile = Caller::limited(4_000).data("get_c64_symbol_profile", json!({})).await.unwrap();
        assert_eq!(
            (&profile["schema_version"], &profile["id"], &profile["version"]),
            (&json!(1), &json!("c64"), &json!("1.1.0"))
        );
        let count = |key: &str| profile[key].as_array().unwrap().len();
        assert_eq!((count("symbols"), count("equates"), count("comments"), count("memory_blocks")), (165, 108, 0, 5));
        let named = |list: &str, name: &str| {
            let list = profile[list].as_array().unwrap();
            list.iter().find(|entry| entry["name"] == name).unwrap().clone()
        };
        let control = named("symbols", "CONTROL_1");
        assert_eq!(
            (&control["address"], &control["namespace"], &control["kind"], &control["primary"]),
            (&json!("RAM:d011"), &json!("C64::VIC"), &json!("label"), &json!(false))
        );
        assert_eq!(named("symbols", "CHROUT")["kind"], "entry_point");
        assert_eq!(named("equates", "C64_SID_CONTROL_GATE")["value"], 1);
        let mut rom = named("memory_blocks", "KERNAL_ROM");
        rom["comment"] = json!("");
        assert_eq!(
            rom,
            json!({"name": "KERNAL_ROM", "start": "e000", "length": 8192, "fill": 0, "overlay": true,
            "read": true, "write": false, "execute": true, "comment": ""})
        );
        let sources = profile["symbols"]
            .as_array()
            .unwrap()
            .iter()
            .all(|symbol| symbol["source_note"].as_str().unwrap().len() > 10);
        assert!(sources);
    }
}
