//! The MCP side: lists the tools of a profile, calls them, and turns their answers into what clients read.

use crate::context::{Context, Progress};
use crate::errors::ToolError;
use crate::schema;
use crate::tool_list::ToolList;
use crate::tools::meta::call_tool;
use crate::tools::{self, Answer, Entry, Profile};
use base::limits;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ServerCapabilities, ServerConfig, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// What a client gets when it connects: the way of working.
pub const INSTRUCTIONS: &str = "\
retroscope watches old programs run, and proves what is in ROMs. Way of working with a program:\n\
1. get_status: what is there now. Every reply about the program carries state, reason, pc, thread, generation; trust \
those, not memory.\n\
2. launch (stops at the entry point) or attach.\n\
3. Which code changes a value? set_watchpoint on its address, continue_execution, read `writer` in the stop: that is the \
instruction that did it. Then backtrace, and disassemble around it.\n\
4. Is code reached, and with what? set_breakpoint, with a condition when it is hit often; conditions cost little.\n\
5. continue_execution waits up to `timeout` seconds (use 10). After that the program runs on untouched: continue again or \
pause. Memory can be read while it runs; registers and steps need a stop.\n\
6. screenshot shows what a person would see.\n\
7. End with detach, which leaves the program unharmed. Never leave a game stopped.\n\
Addresses: \"0x40C8E0\", \"module+0x1000\", a symbol, \"symbol+0x10\". Let the tools do address arithmetic. Errors say \
what was wrong and what to do next. When an answer is truncated, go on at `next`.\n\
ROMs: begin with nds_inspect_rom. search_tools finds a tool by what it does, and explains its arguments with include_schemas.";

/// Revisions of the protocol that are spoken, the oldest first.
const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Milliseconds for which a client may keep the tool list: it changes only with the program itself.
const LIST_TTL_MS: u64 = 300_000;

/// One profile's tools over one context; cheap to clone, as each HTTP request gets its own.
#[derive(Clone)]
pub struct McpServer {
    context: Context,
    list: ToolList,
    tools: Arc<[rmcp::model::Tool]>,
    one_client: bool,
}

impl McpServer {
    /// A server of the tools of `profile`.
    pub fn new(context: Context, profile: Profile) -> Self {
        Self { context, list: ToolList::new(profile), tools: listed(profile).into(), one_client: false }
    }

    /// The same for a connection with one client, which may load groups where its revision of the protocol knows of that.
    #[must_use]
    pub fn for_one_client(self) -> Self {
        Self { one_client: true, ..self }
    }

    /// The list as the sender of this request has it. From revision 2026-07-28 on, which has no `initialize`, it stays as it is.
    fn list_for(&self, request: &RequestContext<RoleServer>) -> ToolList {
        let older = request.protocol_version().is_none_or(|version| version.has_initialize());
        match self.one_client && older {
            true => self.list.changing_for(request.peer.clone()),
            false => self.list.clone(),
        }
    }

    /// The tool as clients are shown it.
    fn described(&self, entry: &'static Entry) -> rmcp::model::Tool {
        self.get_tool(entry.name).unwrap_or_else(|| describe(entry))
    }

    /// The protocol error for a name that is not in the list.
    fn not_listed(&self, list: &ToolList, name: &str) -> ErrorData {
        let error = if tools::find(name).is_some() {
            ToolError::new(
                crate::errors::ErrorCode::UnknownTool,
                format!("the tool `{name}` is not in the profile `{}`", self.list.profile().name()),
            )
            .hint(if list.changes() {
                "load its group with load_tool_group; search_tools says which that is"
            } else {
                "start the server with --tool-profile full, or use the endpoint /mcp/full"
            })
        } else {
            call_tool::unknown(name)
        };
        ErrorData::invalid_params(error.line(), Some(error.json()))
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("profile", &self.list.profile().name()).finish_non_exhaustive()
    }
}

/// The tool list of a profile, as clients get it.
pub fn listed(profile: Profile) -> Vec<rmcp::model::Tool> {
    profile.tools().map(describe).collect()
}

fn describe(entry: &'static Entry) -> rmcp::model::Tool {
    let effect = entry.effect;
    let mut annotations = ToolAnnotations::new().read_only(effect.read_only).open_world(effect.open_world);
    // Of a tool that changes nothing the protocol ignores both.
    if !effect.read_only {
        annotations = annotations.destructive(effect.destructive).idempotent(effect.idempotent);
    }
    let input = match entry.brief {
        Some(described) => schema::brief((entry.input_schema)(), described),
        None => (entry.input_schema)(),
    };
    let tool = rmcp::model::Tool::new(entry.name, entry.description, input).with_annotations(annotations);
    match (entry.output_schema)() {
        Some(schema) if entry.brief.is_some() => tool.with_raw_output_schema(Arc::new(schema::names(&schema))),
        Some(schema) => tool.with_raw_output_schema(Arc::new(schema::outline(&schema, entry.name == "get_status"))),
        None => tool,
    }
}

/// Data is complete in the structured part, with the same JSON as text for clients that read only that. A picture has no
/// structured part, because clients that see one drop everything else. An error is all text, because clients show only that.
fn result(outcome: Result<Answer, ToolError>) -> CallToolResult {
    match outcome {
        Ok(Answer::Data(data)) => CallToolResult::structured(data),
        Ok(Answer::Picture(picture)) => CallToolResult::success(vec![
            ContentBlock::image(STANDARD.encode(&picture.png), "image/png"),
            ContentBlock::text(picture.facts.to_string()),
        ]),
        #[cfg(feature = "conformance")]
        Ok(Answer::Content(content)) => CallToolResult::success(content),
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.text())]),
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("retroscope", env!("CARGO_PKG_VERSION")).with_title("retroscope"))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        // Whoever initializes speaks an older revision.
        if let Some(tools) = result.capabilities.tools.as_mut().filter(|_| self.one_client) {
            tools.list_changed = Some(true);
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("the list has one part only, so there is no cursor to give", None));
        }
        let list = self.list_for(&context);
        let tools = list.tools().into_iter().map(|tool| self.described(tool)).collect();
        let result = ListToolsResult::with_all_items(tools).with_cache_scope(CacheScope::Private);
        Ok(if list.changes() { result } else { result.with_ttl_ms(LIST_TTL_MS) })
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let list = self.list_for(&context);
        let listed = list.tools().into_iter().find(|tool| tool.name == request.name);
        let Some(entry) = listed.or_else(|| tools::anywhere(&request.name)) else {
            return Err(self.not_listed(&list, &request.name));
        };
        let (reporter, reports) = mpsc::unbounded_channel();
        let call = self.context.reporting_to(reporter).with_tool_list(list);
        let running = entry.call(&call, request.arguments.unwrap_or_default());
        let outcome = tokio::select! {
            // What was reported before the end is sent before it.
            biased;
            never = report_progress(&context, reports) => match never {},
            outcome = running => outcome,
            // Dropping the body gives up its wait; nobody reads this answer any more.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
        };
        Ok(result(outcome).into())
    }
}

/// Tells a client that asked for it how far its call is; when the tool says nothing, that it is still waiting.
async fn report_progress(context: &RequestContext<RoleServer>, mut reports: UnboundedReceiver<Progress>) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    let interval = Duration::from_millis(limits::PROGRESS_INTERVAL_MS);
    let mut waited = Duration::ZERO;
    let mut told = false;
    loop {
        let progress = tokio::select! {
            biased;
            Some(progress) = reports.recv() => {
                told = true;
                progress
            }
            () = tokio::time::sleep(interval) => {
                waited += interval;
                if told {
                    continue;
                }
                let message = format!("waiting for the program, {} s", waited.as_secs());
                Progress { done: waited.as_secs_f64(), total: None, message }
            }
        };
        let mut notification =
            ProgressNotificationParam::new(token.clone(), progress.done).with_message(progress.message);
        notification.total = progress.total;
        if let Err(error) = context.peer.notify_progress(notification).await {
            tracing::debug!(%error, "no progress notification");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_are_short_enough() {
        let words = INSTRUCTIONS.split_whitespace().count();
        assert!(words <= limits::MAX_INSTRUCTIONS_WORDS, "{words} words");
    }

    #[test]
    fn the_list_of_every_profile_but_full_is_short_enough() {
        for profile in Profile::all().filter(|profile| profile.name() != Profile::FULL.name()) {
            let bytes = serde_json::to_vec(&listed(profile)).unwrap().len();
            assert!(bytes <= limits::MAX_PROFILE_SCHEMA_BYTES, "{}: {bytes} bytes", profile.name());
        }
    }
}
