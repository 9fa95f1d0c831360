//! `nds_mutation_validate`: what a manifest would do, with nothing written.

use super::build::{self, Params, root, slashes};
use crate::context::Context;
use crate::errors::ToolError;
use crate::tools::nds::on_rom;
use crate::tools::{Effect, Tool};
use ::nds::rebuild;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The tool.
#[derive(Debug)]
pub struct NdsMutationValidate;

/// What would happen.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Validated {
    /// `valid`; anything else is an error.
    status: &'static str,
    build_id: String,
    /// Where the build would be.
    output_root: String,
    /// Every operation with its bytes before and after, every range that would differ, the layout; of the FAT what changes.
    plan: Value,
    /// What a person should know first.
    problems: Value,
}

impl Tool for NdsMutationValidate {
    const NAME: &'static str = "nds_mutation_validate";
    const DESCRIPTION: &'static str = "Check a manifest of changes to a Nintendo DS ROM against the ROM, and show the whole plan: \
         every range that would change, a hex diff of byte edits. Writes nothing; nds_mutation_build does it.";
    const EFFECT: Effect = Effect::READS;
    const WHOLE: bool = true;
    type Params = Params;
    type Output = Validated;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        on_rom(context, params.rom, move |context, job, rom| {
            job.going_on(0, 1, "planning")?;
            let plan = build::plan(context, rom, build::manifest(context, &params.manifest)?, None)?;
            let mut shown = rebuild::resolved(rom, &plan);
            if let Some(Value::Array(entries)) = shown.get_mut("finalFat") {
                let mut id = 0;
                entries.retain(|entry| {
                    let before = rom.file(id).map(|file| json!({"fileId": id, "start": file.start, "end": file.end}));
                    id += 1;
                    before.as_ref() != Some(entry)
                });
            }
            let problems = plan.problems.iter();
            let problems = problems
                .map(|problem| json!({"code": problem.code, "offset": problem.offset, "message": problem.message}));
            Ok(Validated {
                status: "valid",
                build_id: plan.build_id.clone(),
                output_root: slashes(&root(&plan)),
                plan: shown,
                problems: problems.collect(),
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds_build::tests::Rig;

    #[tokio::test]
    async fn of_the_fat_only_what_changes_is_shown_and_nothing_is_written() {
        let rig = Rig::new();
        let told = rig.tool("nds_mutation_validate").await.unwrap();
        let plan = &told["plan"];
        let before = plan["filesystemExtension"]["finalFileCount"].as_u64().unwrap()
            - plan["filesystemExtension"]["addedFiles"].as_u64().unwrap();
        let shown = plan["finalFat"].as_array().unwrap();
        assert!(!shown.is_empty() && shown.iter().all(|entry| entry["fileId"].as_u64().unwrap() >= before), "{plan:#}");
        assert_eq!(plan["operations"][1]["expected"], "01");
        assert!(!rig.place("output").exists());
    }
}
