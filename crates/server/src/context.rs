//! What a tool body may use: the agent, the emulator, the bounds, the folders, and a way to say how far it is.

use crate::agent_client::AgentClient;
use crate::errors::{ErrorCode, ToolError};
use crate::ghidra::Ghidra;
use crate::launch_roots::LaunchRoots;
use crate::rom_cache::{RomCache, RomIdentity};
use crate::tool_list::ToolList;
use crate::tools::Profile;
use crate::tools::nds_live::session::Live;
use crate::vice_client::Vice;
use crate::workspace::Workspace;
use base::limits;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// What every tool body gets. One for each call; what is behind it is shared.
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<Shared>,
    ghidra: Arc<Ghidra>,
    progress: Option<UnboundedSender<Progress>>,
    tool_list: Option<ToolList>,
}

#[derive(Debug)]
struct Shared {
    agent: AgentClient,
    output_limit: Option<usize>,
    workspace: Option<Workspace>,
    launch_roots: LaunchRoots,
    facts: Facts,
    roms: RomCache,
    heavy: Arc<Semaphore>,
    live: Arc<Live>,
    vice: Vice,
}

/// What the server says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// How clients reach it: `stdio`, `http`, or `call` from a shell.
    pub transport: &'static str,
    /// Its tool profile; over HTTP the endpoint of each client may be another.
    pub profile: &'static str,
    /// What makes a ROM the one that was read before.
    pub rom_identity: RomIdentity,
}

impl Default for Facts {
    fn default() -> Self {
        Self { transport: "call", profile: "full", rom_identity: RomIdentity::default() }
    }
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What is done, in any unit; grows.
    pub done: f64,
    /// What there is to do, in the same unit, where it is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: String,
}

impl Context {
    /// A context for one server. `output_limit` is the longest answer in characters, `None` for no bound.
    pub fn new(
        agent: AgentClient,
        output_limit: Option<usize>,
        workspace: Option<Workspace>,
        launch_roots: LaunchRoots,
        facts: Facts,
    ) -> Self {
        let roms = RomCache::new(facts.rom_identity, limits::MAX_ROM_CACHE_BYTES);
        let heavy = Arc::new(Semaphore::new(limits::MAX_HEAVY_CALLS));
        let (live, vice) = (Arc::default(), Vice::default());
        let shared = Shared { agent, output_limit, workspace, launch_roots, facts, roms, heavy, live, vice };
        Self { shared: Arc::new(shared), ghidra: Arc::default(), progress: None, tool_list: None }
    }

    /// The same with another Ghidra than the one at the default address.
    #[must_use]
    pub fn with_ghidra(self, ghidra: Ghidra) -> Self {
        Self { ghidra: Arc::new(ghidra), ..self }
    }

    /// The same for a call whose progress somebody listens to.
    pub fn reporting_to(&self, listener: UnboundedSender<Progress>) -> Self {
        Self { progress: Some(listener), ..self.clone() }
    }

    /// The same for a call of a client that is shown these tools.
    #[must_use]
    pub fn with_tool_list(self, tool_list: ToolList) -> Self {
        Self { tool_list: Some(tool_list), ..self }
    }

    /// The tools that the client is shown.
    pub fn tool_list(&self) -> ToolList {
        let profile = || Profile::named(self.facts().profile).unwrap_or(Profile::FULL);
        self.tool_list.clone().unwrap_or_else(|| ToolList::new(profile()))
    }

    /// Says how far the call is.
    pub fn progress(&self, done: f64, total: Option<f64>, message: impl Into<String>) {
        if let Some(listener) = &self.progress {
            // A listener that has gone has no use for it.
            let _gone = listener.send(Progress { done, total, message: message.into() });
        }
    }

    /// The debug agent.
    pub fn agent(&self) -> &AgentClient {
        &self.shared.agent
    }

    /// Ghidra.
    pub fn ghidra(&self) -> &Ghidra {
        &self.ghidra
    }

    /// Longest answer in characters; `None` for no bound.
    pub fn output_limit(&self) -> Option<usize> {
        self.shared.output_limit
    }

    /// The folder that file tools work below.
    ///
    /// # Errors
    /// `workspace_missing`.
    pub fn workspace(&self) -> Result<&Workspace, ToolError> {
        self.shared.workspace.as_ref().ok_or_else(|| {
            ToolError::new(ErrorCode::WorkspaceMissing, "the tool works on files, and the server has no workspace")
                .hint("start it with --workspace DIR or RETROSCOPE_WORKSPACE_ROOT; not / and not the home folder")
        })
    }

    /// What the server says of itself.
    pub fn facts(&self) -> Facts {
        self.shared.facts
    }

    /// The ROMs that were opened.
    pub fn roms(&self) -> &RomCache {
        &self.shared.roms
    }

    /// The emulator, if one was started.
    pub fn live(&self) -> &Arc<Live> {
        &self.shared.live
    }

    /// The connection to VICE.
    pub fn vice(&self) -> &Vice {
        &self.shared.vice
    }

    /// Waits until one more call may compute for long.
    pub(crate) async fn heavy_work(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.shared.heavy).acquire_owned().await
    }

    /// Where programs may be launched from.
    pub fn launch_roots(&self) -> &LaunchRoots {
        &self.shared.launch_roots
    }
}
