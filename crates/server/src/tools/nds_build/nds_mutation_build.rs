//! `nds_mutation_build`: makes the ROM that a manifest asks for, and publishes it when it was judged right.

use super::build::{self, Build, Params, root};
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use crate::tools::nds::on_rom;
use crate::tools::{Effect, Tool};
use ::nds::Rom;
use ::nds::rebuild::{self, Plan, Report};
use std::path::PathBuf;

/// The tool.
#[derive(Debug)]
pub struct NdsMutationBuild;

impl Tool for NdsMutationBuild {
    const NAME: &'static str = "nds_mutation_build";
    const DESCRIPTION: &'static str = "Build a modded Nintendo DS ROM from a manifest of changes, beside the source, which is never \
         written. The result is verified byte by byte, then published whole below output/nds with evidence and, in version 3, a \
         BPS patch. A build that is there is verified and reused.";
    const EFFECT: Effect = Effect::SETS;
    type Params = Params;
    type Output = Build;

    async fn run(context: &Context, params: Params) -> Result<Self::Output, ToolError> {
        on_rom(context, params.rom, move |context, job, rom| {
            job.going_on(0, 4, "planning")?;
            let plan = build::plan(context, rom, build::manifest(context, &params.manifest)?, None)?;
            if let Some(report) = reusable(context, rom, &plan)? {
                return Ok(Build::new(rom, &plan, &report, true));
            }
            job.going_on(1, 4, "building")?;
            let workspace = context.workspace()?;
            workspace.reached("planned");
            let output = rebuild::apply(rom, &plan)?;
            workspace.reached("applied");
            let report = rebuild::verify(rom, &plan, output)?;
            workspace.reached("verified");
            let evidence = rebuild::evidence(rom, &plan, &report)?;
            job.going_on(2, 4, "writing")?;
            let mut files = vec![(PathBuf::from(&plan.manifest.filename), report.output.bytes())];
            files.extend(evidence.iter().map(|(name, bytes)| (PathBuf::from(name), bytes.as_slice())));
            if workspace.publish_folder(&root(&plan), &files)? {
                return Ok(Build::new(rom, &plan, &report, false));
            }
            // Somebody else was quicker.
            let report = reusable(context, rom, &plan)?.ok_or_else(|| {
                ToolError::new(ErrorCode::PublishFailed, "the place of the build was taken and is free again")
                    .hint("call again when nobody else builds there")
            })?;
            Ok(Build::new(rom, &plan, &report, true))
        })
        .await
    }
}

/// The build that is there, judged; whatever is wrong with it is a collision, and it is left alone.
fn reusable(context: &Context, rom: &Rom, plan: &Plan) -> Result<Option<Report>, ToolError> {
    build::existing(context, rom, plan).map_err(|error| {
        let place = build::slashes(&root(plan));
        ToolError::new(
            ErrorCode::PublishCollision,
            format!("{place} is there and is not this build: {}", error.message),
        )
        .hint("it was left as it is; move it away and build again")
        .detail("category", error.code.word())
    })
}
