//! `nds_mutation_verify`: judges a build that is there by its bytes.

use super::build::{self, Build, Params};
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::nds::on_rom;
use crate::tools::{Effect, Tool};

/// The tool.
#[derive(Debug)]
pub struct NdsMutationVerify;

impl Tool for NdsMutationVerify {
    const NAME: &'static str = "nds_mutation_verify";
    const DESCRIPTION: &'static str = "Verify a modded Nintendo DS ROM that nds_mutation_build made: every byte of it and of its \
         evidence against the source and the manifest. Changes nothing.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Build;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        on_rom(context, params.rom, move |context, job, rom| {
            job.going_on(0, 2, "planning")?;
            let manifest = build::manifest(context, &params.manifest)?;
            let plan = build::plan(context, rom, manifest.clone(), None)?;
            job.going_on(1, 2, "verifying")?;
            if let Some(report) = build::existing(context, rom, &plan)? {
                return Ok(Build::new(rom, &plan, &report, true));
            }
            // A build that an earlier encoder made has another identity, and its streams are judged by what they decode to.
            if let Some(recorded) = build::recorded(context, &plan)? {
                let plan = build::plan(context, rom, manifest, Some(&recorded))?;
                if let Some(report) = build::existing(context, rom, &plan)? {
                    return Ok(Build::new(rom, &plan, &report, true));
                }
            }
            let place = build::slashes(&build::root(&plan));
            Err(ToolError::new(ErrorCode::OutputVerificationFailed, format!("there is no build at {place}"))
                .hint("make it with nds_mutation_build"))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds_build::tests::Rig;

    #[tokio::test]
    async fn a_flipped_byte_of_the_result_is_found() {
        let rig = Rig::new();
        let built = rig.tool("nds_mutation_build").await.unwrap();
        let verified = rig.tool("nds_mutation_verify").await.unwrap();
        assert_eq!(verified["outputSha256"], built["outputSha256"]);
        let output = rig.place(built["outputRomPath"].as_str().unwrap());
        let mut bytes = std::fs::read(&output).unwrap();
        bytes[0x4001] ^= 4;
        std::fs::write(&output, bytes).unwrap();
        let error = rig.tool("nds_mutation_verify").await.unwrap_err();
        assert_eq!(error.code.word(), "unexpected-rom-diff");
    }
}
