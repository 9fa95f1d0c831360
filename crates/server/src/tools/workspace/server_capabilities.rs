//! `server_capabilities`: what this server is, has and may do.

use crate::context::Context;
use crate::errors::ToolError;
use crate::rom_cache::RomIdentity;
use crate::tools::{Effect, Profile, Tool, nds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool.
#[derive(Debug)]
pub struct ServerCapabilities;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {}

/// What it is, has and may do.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Version of the server.
    version: &'static str,
    /// How clients reach it: `stdio`, `http`, or `call` from a shell.
    transport: &'static str,
    /// The folder that file tools work below.
    workspace_root: Option<String>,
    /// The profile it was started with; over HTTP the endpoint decides.
    active_tool_profile: &'static str,
    advertised_tool_count: usize,
    tools: Vec<&'static str>,
    arbitrary_shell: bool,
    mutation_policy: &'static str,
    nds_mutation_tools: Vec<&'static str>,
    process_policy: &'static str,
    debugger_policy: &'static str,
    evidence_policy: &'static str,
    controller_checkpoint_policy: &'static str,
    nds_static_analysis_tools: Vec<&'static str>,
    nds_ghidra_tools: Vec<&'static str>,
    re_orchestration_tools: Vec<&'static str>,
    re_orchestration_policy: &'static str,
    investigation_persistence_policy: &'static str,
    nds_static_analysis_policy: &'static str,
    /// What makes a ROM the one that was read before: `metadata` or `sha256`.
    rom_identity: &'static str,
}

impl Tool for ServerCapabilities {
    const NAME: &'static str = "server_capabilities";
    const DESCRIPTION: &'static str = "Say what this server is and may do: version, workspace, profile and its tools, and \
         what tools may write or start.";
    const EFFECT: Effect = Effect::READS;
    type Params = Params;
    type Output = Capabilities;

    async fn run(context: &Context, _params: Params) -> Result<Capabilities, ToolError> {
        let facts = context.facts();
        let profile = Profile::named(facts.profile).unwrap_or(Profile::FULL);
        let tools: Vec<_> = profile.tools().map(|tool| tool.name).collect();
        let none = Vec::new;
        Ok(Capabilities {
            version: env!("CARGO_PKG_VERSION"),
            transport: facts.transport,
            workspace_root: context.workspace().ok().map(|workspace| workspace.root().display().to_string()),
            active_tool_profile: profile.name(),
            advertised_tool_count: tools.len(),
            tools,
            arbitrary_shell: false,
            mutation_policy: "No ROM is ever written to. The debug tools write to the memory and registers of the program \
                they are told to.",
            nds_mutation_tools: none(),
            process_policy: "The debug agent starts the program that `launch` names, below the launch roots if any are \
                configured. desmume_start starts one emulator, which the server owns and ends. Nothing else is started.",
            debugger_policy: "x86 programs, by the debug agent, which owns them. Nintendo DS programs by \
                an emulator's GDB stub: breakpoints in known code, reads, steps, and watchpoints if configured.",
            evidence_policy: "Files are written whole or not at all, below analysis/generated/nds/ and the first 16 digits \
                of the ROM's SHA-256; evidence of a run below analysis/generated of a folder of the workspace.",
            controller_checkpoint_policy: "Nothing is kept.",
            nds_static_analysis_tools: nds::GROUP.tools.iter().map(|tool| tool.name).collect(),
            nds_ghidra_tools: none(),
            re_orchestration_tools: none(),
            re_orchestration_policy: "No tool calls another.",
            investigation_persistence_policy: "Nothing is kept.",
            nds_static_analysis_policy: "Facts come from the bytes of the ROM, which is opened for reading only and checked \
                to be the same file before and after each call. Ambiguity is returned as such.",
            rom_identity: match facts.rom_identity {
                RomIdentity::Metadata => "metadata",
                RomIdentity::Sha256 => "sha256",
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::nds::tests::files;
    use crate::tools::{Profile, all};
    use serde_json::json;

    #[tokio::test]
    async fn what_it_says_is_what_the_lists_hold() {
        let (folder, call) = files(&[]);
        let said = call("server_capabilities", json!({})).await.unwrap();
        assert_eq!(said["workspaceRoot"], folder.path().canonicalize().unwrap().display().to_string());
        assert_eq!(said["advertisedToolCount"], Profile::FULL.tools().count());
        let analysis: Vec<_> = all().filter(|(group, _)| *group == "nds").map(|(_, tool)| tool.name).collect();
        assert_eq!(said["ndsStaticAnalysisTools"], json!(analysis));
        assert_eq!((&said["arbitraryShell"], &said["romIdentity"]), (&json!(false), &json!("metadata")));
    }
}
