//! Every number that bounds the work of the project, in one place: what it limits, its unit, and why it is that large.
//! Schemas, documents and error messages take their numbers from here.

// ---- the debug agent's wire ----

/// TCP port on loopback where the debug agent listens.
pub const DEFAULT_AGENT_PORT: u16 = 47474;
/// Longest line of the agent protocol, in bytes: a 16 MiB write as base64 with room for the envelope.
pub const MAX_FRAME_BYTES: usize = 24 * 1024 * 1024;
/// Clients connected to one agent at once: a client costs a thread.
pub const MAX_CLIENTS: usize = 64;
/// Seconds a client may take to accept a reply before its connection is closed, so that one that never reads costs nothing.
pub const CLIENT_WRITE_TIMEOUT_S: u64 = 30;
/// Commands of one connection that may be unanswered at once; further lines are not read until one is answered.
pub const MAX_CLIENT_COMMANDS: usize = 32;
/// Bytes of requests and of memory reads of one connection that may be unanswered at once: two of the largest.
pub const MAX_CLIENT_BYTES: u64 = 32 * 1024 * 1024;
/// Commands of all clients that wait for the engine to take them: more means that it does not keep up.
pub const MAX_QUEUED_COMMANDS: usize = 1_024;
/// Milliseconds beyond its own time limit after which a command is answered `timeout` though the engine has not spoken.
pub const ENGINE_SLACK_MS: u64 = 5_000;
/// Longest sleep of the engine with nothing to do, in milliseconds; a command wakes it at once.
pub const ENGINE_POLL_MS: u64 = 1_000;
/// Milliseconds the engine has to let the program go when the agent ends: holding every thread, then some writes.
pub const SHUTDOWN_TIMEOUT_MS: u64 = 10_000;

// ---- memory ----

/// Bytes of one memory read over the wire: its base64 form fits in a frame.
pub const MAX_READ_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of one memory write over the wire: its base64 form fits in a frame.
pub const MAX_WRITE_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of a read that a tool gives by default.
pub const DEFAULT_READ_BYTES: u64 = 256;

// ---- breakpoints, watchpoints, running ----

/// Breakpoints set at once.
pub const MAX_BREAKPOINTS: usize = 1_024;
/// Hardware debug registers for addresses, DR0 to DR3 (Intel SDM volume 3, section 18.2).
pub const WATCH_SLOTS: usize = 4;
/// Comparisons in one condition: it is evaluated at every hit.
pub const MAX_CONDITION_TERMS: usize = 64;
/// Nesting depth of `all` and `any` in a condition.
pub const MAX_CONDITION_DEPTH: usize = 8;
/// Longest address expression, in bytes.
pub const MAX_ADDR_EXPR_BYTES: usize = 512;
/// Longest wait of `continue_execution`, in seconds.
pub const MAX_CONTINUE_TIMEOUT_S: u64 = 300;
/// Wait of `continue_execution` that the tools recommend, and of `step` when none is named, in seconds: MCP clients give
/// up at about 60.
pub const DEFAULT_CONTINUE_TIMEOUT_S: u64 = 10;
/// Steps in one call.
pub const MAX_STEP_COUNT: u32 = 10_000;
/// Time that the agent gives threads to come to a halt, in milliseconds: only a thread inside the kernel takes longer.
pub const HOLD_TIMEOUT_MS: u64 = 2_000;
/// Longest time any other command may take in the agent, in milliseconds.
pub const COMMAND_TIMEOUT_MS: u64 = 10_000;
/// Time that one instruction, stepped while all other threads hold, may take before they run on, in milliseconds: only a
/// system call that waits for another thread takes longer.
pub const STEP_GRACE_MS: u64 = 100;
/// Instructions stepped before other commands are looked at.
pub const STEP_BATCH: u32 = 256;
/// Instructions that the trace of a step shows, the last ones.
pub const STEP_TRACE: usize = 32;
/// Bytes of scratch memory mapped into the program at once for the instructions under breakpoints: one slot of 64 bytes
/// for each breakpoint that can be set.
pub const SCRATCH_REGION_BYTES: u64 = 64 * 1024;
/// Distance from a breakpoint at which scratch memory still serves it, in bytes: half of what a 32-bit displacement
/// reaches, so that its operands are in reach too.
pub const SCRATCH_REACH_BYTES: u64 = 1 << 30;
/// Rounds in which the engine brings threads past breakpoints before it looks at commands again.
pub const RESUME_ROUNDS: u32 = 4_096;
/// Names and addresses that an error lists as candidates.
pub const NEAR_NAMES: usize = 8;
/// Symbols before an address that are looked at to find the one it lies in: aliases and locals share a place.
pub const NEAR_SYMBOLS: usize = 64;
/// Distance from a function of unknown length at which an address still counts as inside it, in bytes.
pub const OPEN_SYMBOL_BYTES: u64 = 64 * 1024;
/// Readings of a name with `+` or `-` in it that are tried.
pub const MAX_NAME_PARTS: usize = 8;
/// Bytes of the stack that are searched for a return address.
pub const STACK_SCAN_BYTES: u64 = 4 * 1024;
/// Bytes that the error of a partly readable read carries.
pub const PARTIAL_READ_BYTES: usize = 64 * 1024;
/// Texts kept of what the program sends to its debugger: a screenful of its log.
pub const MAX_DEBUG_OUTPUTS: usize = 64;
/// Characters kept of a text that the program sends to its debugger.
pub const MAX_DEBUG_OUTPUT_CHARS: usize = 1_024;
/// Pictures taken at once: each costs a thread and the memory of a screen.
pub const MAX_SCREENSHOTS_AT_ONCE: usize = 2;
/// Pause after a failed wait for the program, in milliseconds, so that the agent does not spin.
pub const WAIT_RETRY_MS: u64 = 20;
/// Notes kept for the next stop report.
pub const MAX_NOTES: usize = 16;
/// Seconds after which a program left stopped without a client is detached.
pub const DEFAULT_ORPHAN_AFTER_S: u64 = 300;

/// Bytes decoded from the start of a function to find the instruction before a watchpoint trap: more than nearly all
/// functions have, and a bound on the work at each trap.
pub const MAX_ATTRIBUTION_PATH_BYTES: u64 = 64 * 1024;
/// Bytes before a watchpoint trap where decoding begins when no function start is known: decoding from a wrong
/// place usually falls into step within a few instructions, and 64 bytes hold some 16.
pub const ATTRIBUTION_SYNC_BYTES: u64 = 64;

/// Time that the Windows platform gives a process to report itself after an attach, in milliseconds: its threads and
/// libraries are told one by one.
pub const ATTACH_TIMEOUT_MS: u64 = 8_000;
/// Time that a suspended Windows thread has to come to rest, in milliseconds: it takes well under one when it does at all.
pub const THREAD_REST_TIMEOUT_MS: u64 = 1_000;
/// Longest wait for a Windows debug event before looking for commands, in milliseconds: that wait cannot be interrupted.
pub const DEBUG_EVENT_SLICE_MS: u64 = 10;
/// Time after a command in which the next one is expected soon, in milliseconds: the wait is cut to 1 ms then.
pub const COMMAND_BURST_MS: u64 = 100;
/// Time between two looks at whether a frozen Windows program still exists, in milliseconds.
pub const FROZEN_SLICE_MS: u64 = 100;
/// Exit code of a Windows program that the agent ended.
pub const KILLED_EXIT_CODE: u32 = 1;
/// Bytes of a library's name in a Windows program's memory: its longest path in UTF-16.
pub const MAX_MODULE_PATH_BYTES: usize = 65_536;
/// Bytes of a thread's name given by an exception, as debuggers have read it since Visual C++ 6.
pub const MAX_THREAD_NAME_BYTES: usize = 256;
/// Time that a window has to draw itself into a picture, in milliseconds.
pub const PRINT_WINDOW_TIMEOUT_MS: u64 = 2_000;

// ---- lists ----

/// Instructions of one `disassemble`.
pub const MAX_DISASSEMBLE_COUNT: u32 = 1_000;
/// Instructions of a `disassemble` that names no count.
pub const DEFAULT_DISASSEMBLE_COUNT: u32 = 16;
/// Frames of one `backtrace`.
pub const MAX_BACKTRACE_FRAMES: u32 = 256;
/// Frames of a `backtrace` that names no count.
pub const DEFAULT_BACKTRACE_FRAMES: u32 = 32;
/// Symbols read from one module: a browser's debug build has about a million.
pub const MAX_SYMBOLS_PER_MODULE: usize = 2_000_000;
/// Bytes of an executable or library file whose symbols are read.
pub const MAX_MODULE_FILE_BYTES: u64 = 1024 * 1024 * 1024;
/// Bytes of a file that names addresses: the names of one module at their usual length.
pub const MAX_SYMBOL_MAP_BYTES: u64 = 64 * 1024 * 1024;
/// Arguments, and environment variables, of one launch.
pub const MAX_LAUNCH_STRINGS: usize = 4_096;

// ---- screenshots ----

/// Pixels of a screenshot: 8K in both directions.
pub const MAX_SCREENSHOT_PIXELS: u64 = 7_680 * 4_320;
/// Longest time that the X server may take to give a screenshot, in milliseconds: a program halted while it has grabbed
/// the server keeps everybody waiting.
pub const X11_TIMEOUT_MS: u64 = 5_000;
/// Windows looked at to find those of the program: a crowded desktop has some hundreds.
pub const MAX_WINDOWS_SEEN: usize = 4_096;
/// Bytes of a window title that are read.
pub const MAX_TITLE_BYTES: u32 = 1_024;
/// Bytes of an X authority file that are read: an entry has about 50, and there is one for each display ever used.
pub const MAX_AUTHORITY_BYTES: u64 = 1024 * 1024;

// ---- the MCP server ----

/// Longest MCP message a client may send, in bytes: the largest `write_memory` as base64 with room for the envelope.
pub const MAX_MCP_MESSAGE_BYTES: usize = 24 * 1024 * 1024;
/// Characters of one tool answer unless the configuration says otherwise: clients put more than 50,000 into a file and
/// refuse 25,000 tokens.
pub const DEFAULT_OUTPUT_CHARS: usize = 20_000;
/// Fewest characters the configuration may allow one tool answer: a stop report with all registers needs some 3,000.
pub const MIN_OUTPUT_CHARS: usize = 4_000;
/// Most characters the configuration may allow one tool answer: the largest memory read as base64, with room around it.
pub const MAX_OUTPUT_CHARS: usize = 24 * 1024 * 1024;
/// Items of a list that a tool gives when no `limit` is named.
pub const DEFAULT_LIST_ITEMS: u32 = 100;
/// Items of a list that a tool gives at most in one answer: as many as there can be breakpoints.
pub const MAX_LIST_ITEMS: u32 = 1_024;
/// Tools that one `search_tools` answer names at most: as many as c64-mcp's did.
pub const MAX_SEARCH_RESULTS: usize = 50;
/// Tools that one `search_tools` answer names when no `limit` is given: as many as c64-mcp's did.
pub const DEFAULT_SEARCH_RESULTS: usize = 15;
/// Words of a search for tools that are looked at: more than any question has.
pub const MAX_SEARCH_TERMS: usize = 32;
/// Longest side of a screenshot in a tool answer, in pixels: models see larger pictures scaled down to this.
pub const MAX_PICTURE_SIDE: u32 = 1_568;
/// Words of the instructions that a client gets when it connects: they are in its context all the time.
pub const MAX_INSTRUCTIONS_WORDS: usize = 200;
/// Bytes of the tool list of a profile, `full` excepted: 12,000 tokens of about 4 bytes.
pub const MAX_PROFILE_SCHEMA_BYTES: usize = 48_000;
/// Time between two reports of a call that computes, in milliseconds: as often as a bar that is looked at should move.
pub const JOB_PROGRESS_INTERVAL_MS: u64 = 500;
/// Calls that compute at once, on threads of their own: each may hold a ROM; the rest wait their turn.
pub const MAX_HEAVY_CALLS: usize = 4;
/// Bytes of a file that are read or hashed between two looks whether the call was cancelled: a millisecond's work.
pub const FILE_CHUNK_BYTES: u64 = 1024 * 1024;
/// Bytes of ROMs that the server keeps between calls: the largest card once, or several usual ones.
pub const MAX_ROM_CACHE_BYTES: u64 = 512 * 1024 * 1024;
/// Bytes of a file whose hash `verify_file_sha256` gives: above the largest image of a DVD, two minutes of hashing.
pub const MAX_HASHED_FILE_BYTES: u64 = 16 * 1024 * 1024 * 1024;
/// Time between two progress notifications of a call that waits, in milliseconds: people look that often.
pub const PROGRESS_INTERVAL_MS: u64 = 5_000;
/// Time the server gives open requests when it is told to end, in milliseconds.
pub const SHUTDOWN_GRACE_MS: u64 = 3_000;
/// Time until a connection to the agent must stand, its greeting included, in milliseconds.
pub const AGENT_CONNECT_TIMEOUT_MS: u64 = 5_000;
/// Time the server waits for the agent's answer beyond the time the command itself may take, in milliseconds.
pub const AGENT_ANSWER_SLACK_MS: u64 = 5_000;
/// Longest time the configuration may give a command that does not wait for the program, in milliseconds.
pub const MAX_COMMAND_TIMEOUT_MS: u64 = 600_000;
/// Connections of one server to the agent at once: fewer than the agent accepts, so that others get in.
pub const MAX_AGENT_CONNECTIONS: usize = 16;
/// Seconds without a call after which an HTTP server gives its connections to the agent up, so that a program left
/// stopped by a client that never came back is let go in the end.
pub const AGENT_IDLE_S: u64 = 900;
/// Connections to the agent kept open between calls.
pub const MAX_IDLE_AGENT_CONNECTIONS: usize = 4;

// ---- Commodore 64 ----

/// Bytes of one text that is decoded, and of one search: sixteen times what the machine can address.
pub const MAX_C64_TEXT_BYTES: usize = 1024 * 1024;
/// Characters that the plain and the lossless form of decoded text, or of all matches of a search, may have together:
/// tokens can grow without end.
pub const MAX_C64_RENDERED_CHARS: usize = 4_194_304;
/// References that a token may follow one after another: as many as there are bytes to refer to.
pub const MAX_C64_TOKEN_DEPTH: usize = 256;
/// References that a token follows when nothing is said: game texts nest a few times.
pub const DEFAULT_C64_TOKEN_DEPTH: usize = 8;
/// Bytes searched when nothing is said: the machine's memory.
pub const DEFAULT_C64_SCAN_BYTES: usize = 65_536;
/// Matches of one search.
pub const MAX_C64_SEARCH_RESULTS: usize = 1_000;
/// Matches of one search when nothing is said.
pub const DEFAULT_C64_SEARCH_RESULTS: usize = 100;
/// Characters or bytes of what is searched for: a longer one is data to compare, not something to search for.
pub const MAX_C64_QUERY: usize = 4_096;
/// Bytes of one source of graphics that stand in the arguments themselves: the machine's memory.
pub const MAX_C64_INLINE_BYTES: usize = 65_536;
/// Bytes of a file that is read for text or graphics: the largest memory expansion there was.
pub const MAX_C64_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Cells of a picture in one direction: half as many again as a screen has columns.
pub const MAX_C64_CELLS_A_SIDE: usize = 64;
/// Cells of a picture: two screens.
pub const MAX_C64_CELLS: usize = 2_048;
/// Glyphs of a character set: a screen code is one byte.
pub const MAX_C64_GLYPHS: usize = 256;
/// Sprites of one sheet: 16 KiB, all that the VIC-II sees at once, in blocks of 64 bytes.
pub const MAX_C64_SPRITES: usize = 256;
/// Pixels of a decoded picture.
pub const MAX_C64_PIXELS: usize = 4_194_304;
/// Bytes of a picture file that is written or shown.
pub const MAX_C64_PNG_BYTES: usize = 8 * 1024 * 1024;
/// Colours of a palette: PNG stores an index in one byte.
pub const MAX_C64_PALETTE: usize = 256;

// ---- Ghidra ----

/// TCP port on loopback where Ghidra's plug-in serves HTTP.
pub const DEFAULT_GHIDRA_PORT: u16 = 8089;
/// Seconds that one request to Ghidra may take when nothing is said.
pub const DEFAULT_GHIDRA_TIMEOUT_S: f64 = 30.0;
/// Most seconds that the configuration may give one request to Ghidra: a day is as good as for ever.
pub const MAX_GHIDRA_TIMEOUT_S: f64 = 86_400.0;
/// Bytes of one answer of Ghidra: a megabyte of memory takes some seven in its form, symbols of a large program more.
pub const MAX_GHIDRA_ANSWER_BYTES: usize = 67_108_864;
/// Characters of Ghidra's own words that an error carries.
pub const MAX_GHIDRA_ERROR_CHARS: usize = 2_000;
// ---- Nintendo DS ROMs ----

/// Largest ROM, in bytes: the largest card that was made, capacity code 12.
pub const MAX_NDS_ROM_BYTES: u64 = 512 * 1024 * 1024;
/// Files of one ROM: file identifiers from 0xF000 on name directories.
pub const MAX_NDS_FILES: u32 = 0xF000;
/// Directories of one ROM: identifiers 0xF000 to 0xFFFF.
pub const MAX_NDS_DIRECTORIES: u16 = 4_096;
/// Bytes of one path in a ROM's file system, and of one that a tool takes.
pub const MAX_NDS_PATH_BYTES: usize = 4_096;
/// Bytes of all paths of one ROM together: 61,440 files at 256 bytes, more than the longest names of retail games need.
pub const MAX_NDS_PATHS_BYTES: u64 = 16 * 1024 * 1024;
/// Overlays of one processor: the largest games have some hundreds.
pub const MAX_NDS_OVERLAYS: u32 = 4_096;
/// Autoload blocks of one program: the SDK makes two or three.
pub const MAX_NDS_AUTOLOADS: usize = 16;
/// Bytes that one compressed program or overlay may have when decoded: all main memory of a DSi.
pub const MAX_NDS_IMAGE_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of decoded programs and overlays that one ROM keeps in memory: far more than a console has, so that every overlay of
/// a real game fits.
pub const MAX_NDS_DECODED_BYTES: u64 = 128 * 1024 * 1024;
/// Bytes of compressed overlays that are checked when a ROM is opened; many overlays may name the same bytes.
pub const MAX_NDS_CHECKED_BYTES: u64 = MAX_NDS_ROM_BYTES;
/// Bytes from the start of a program that are searched for its module parameters: the SDK puts them into the first 16 KiB,
/// behind the secure area's stubs.
pub const MAX_NDS_MODULE_PARAMS_SEARCH_BYTES: usize = 32 * 1024;
/// Items of a list of files or overlays that a tool gives at most in one answer, by the contract of these tools.
pub const MAX_NDS_LIST_ITEMS: u64 = 200;
/// Items of such a list when no `limit` is named.
pub const DEFAULT_NDS_LIST_ITEMS: u64 = 100;
/// Items of a long result that may be skipped or asked for at once: functions, call sites and instructions of a whole ROM.
pub const MAX_NDS_RESULT_ITEMS: u64 = 16 * 1024 * 1024;
/// Problems that are told of one ROM; the rest are counted.
pub const MAX_NDS_PROBLEMS: usize = 256;

// ---- Nintendo DS rebuilds ----

/// Bytes of a manifest of changes: its largest byte edits are hexadecimal text, larger ones belong into files beside it.
pub const MAX_MUTATION_MANIFEST_BYTES: u64 = 16 * 1024 * 1024;
/// Changes of one manifest, by its contract.
pub const MAX_MUTATION_OPERATIONS: usize = 4_096;
/// Bytes of one file that replaces or becomes one of the ROM, by the manifest's contract.
pub const MAX_MUTATION_ARTIFACT_BYTES: u64 = 64 * 1024 * 1024;
/// Files that one manifest adds, by its contract.
pub const MAX_NEW_NDS_FILES: usize = 256;
/// Bytes of these files together, by the manifest's contract.
pub const MAX_NEW_NDS_FILES_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of one name in the file system: seven bits of the FNT hold its length.
pub const MAX_NDS_NAME_BYTES: usize = 127;
/// Bytes that a rebuild may append to a ROM, padding excepted, by the manifest's contract.
pub const MAX_NDS_GROWTH_BYTES: u64 = 128 * 1024 * 1024;
/// Bytes of a FNT or a FAT that is written anew, by the manifest's contract.
pub const MAX_NDS_TABLE_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of all files of one manifest together: every byte of the largest ROM once, and all that may be appended.
pub const MAX_MUTATION_ARTIFACTS_BYTES: u64 = MAX_NDS_ROM_BYTES + MAX_NDS_GROWTH_BYTES;
/// Times that a build asks for the folder of builds, while another one removes there what was abandoned.
pub const STAGING_LOCK_TRIES: u32 = 200;
/// Milliseconds between two of them: two seconds in all, where removing a build takes some milliseconds.
pub const STAGING_LOCK_WAIT_MS: u64 = 10;
/// Bytes of one byte edit that are shown as a difference: some lines on a screen.
pub const MUTATION_DIFF_BYTES: usize = 64;
/// Earlier places of the same three bytes that the BLZ encoder looks at for a longer copy: four times as many make real code
/// 0.3 % shorter and take a third longer.
pub const BLZ_CHAIN_STEPS: usize = 24;

// ---- Nintendo DS analysis ----

/// Bytes of a search pattern: far longer than any signature that tells one place from all others.
pub const MAX_PATTERN_BYTES: usize = 1_024;
/// Largest number of hits that a page of a pattern search may skip.
pub const MAX_PATTERN_OFFSET: usize = 99_999;
/// Instructions on the straight line before an indirect branch that are looked at for the load of its target: compilers put
/// it within a few.
pub const NDS_LITERAL_WINDOW: usize = 32;
/// Instructions that are scanned to prove the instruction set at an address: all code of a 1 MiB program, some milliseconds.
pub const NDS_AUTO_MODE_INSTRUCTIONS: u64 = 262_144;
/// Entries of one jump table: an interpreter's switch over two bytes of opcode has some thousands.
pub const NDS_JUMP_TABLE_ENTRIES: u32 = 4_096;

/// Instructions of one scan of code for functions, references or a proof: four times all instructions of a 4 MiB program.
pub const MAX_SCAN_INSTRUCTIONS: u64 = 4_194_304;
/// Bytes that one scan decodes: that many instructions at 4 bytes.
pub const MAX_SCAN_BYTES: u64 = 16 * 1024 * 1024;
/// Blocks of one scan: a block has at least one instruction.
pub const MAX_SCAN_BLOCKS: u64 = MAX_SCAN_INSTRUCTIONS;
/// Edges of one scan: a block has at most two, jump tables aside.
pub const MAX_SCAN_EDGES: u64 = 2 * MAX_SCAN_INSTRUCTIONS;
/// Functions of one discovery: the largest games have some 30,000.
pub const MAX_SCAN_FUNCTIONS: u64 = 65_536;
/// Call sites of one discovery: 16 for each function.
pub const MAX_SCAN_CALL_SITES: u64 = 1_048_576;
/// References that one search for them collects.
pub const MAX_XREFS: u64 = 65_536;
/// Components of one scan: every overlay of the largest games.
pub const MAX_SCAN_COMPONENTS: u64 = 4_096;
/// Overlays that one scope or search names.
pub const MAX_SCOPE_OVERLAYS: usize = 128;
/// Files that one search names.
pub const MAX_SCOPE_FILES: usize = 256;
/// Seeds of one search for references.
pub const MAX_XREF_SEEDS: usize = 512;
/// Seeds of one discovery, and of one function's proof; as many as a vtable-heavy game needs.
pub const MAX_FUNCTION_SEEDS: usize = 4_096;
/// Instructions of one straight-line disassembly or list of references.
pub const MAX_LINEAR_INSTRUCTIONS: u64 = 256;
/// Bytes of one straight-line disassembly or list of references: that many instructions at 4 bytes.
pub const MAX_LINEAR_BYTES: u64 = 1_024;
/// Instructions of a straight line when no number is given.
pub const DEFAULT_LINEAR_INSTRUCTIONS: u64 = 32;
/// Bytes of a straight line when no number is given.
pub const DEFAULT_LINEAR_BYTES: u64 = 128;
/// Blocks of one control flow graph.
pub const MAX_CFG_BLOCKS: u64 = 256;
/// Instructions of one control flow graph.
pub const MAX_CFG_INSTRUCTIONS: u64 = 4_096;
/// Bytes of one control flow graph.
pub const MAX_CFG_BYTES: u64 = 16_384;
/// Edges of one control flow graph.
pub const MAX_CFG_EDGES: u64 = 1_024;
/// Blocks of one control flow graph when no number is given.
pub const DEFAULT_CFG_BLOCKS: u64 = 64;
/// Instructions of one control flow graph when no number is given.
pub const DEFAULT_CFG_INSTRUCTIONS: u64 = 512;
/// Bytes of one control flow graph when no number is given.
pub const DEFAULT_CFG_BYTES: u64 = 2_048;
/// Edges of one control flow graph when no number is given.
pub const DEFAULT_CFG_EDGES: u64 = 128;
/// Hits of one page of a pattern search.
pub const MAX_PATTERN_LIMIT: usize = 1_000;
/// Bytes of context around a hit.
pub const MAX_PATTERN_CONTEXT_BYTES: usize = 64;
/// Bytes that a pattern search looks at when no number is given.
pub const DEFAULT_PATTERN_SCAN_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes that a pattern search looks at: the largest ROM.
pub const MAX_PATTERN_SCAN_BYTES: u64 = MAX_NDS_ROM_BYTES;

// ---- Nintendo DS tools ----
// Ranges and defaults that scripts rely on. Those of scans were raised where one real program did not fit in them.

/// Blocks of one function's graph in a scan, which gives only its size: the largest function of a game has some thousands.
pub const MAX_NDS_FUNCTION_BLOCKS: u64 = 65_536;
/// Instructions of one function's graph in a scan: a quarter of a 1 MiB program.
pub const MAX_NDS_FUNCTION_INSTRUCTIONS: u64 = 65_536;
/// Bytes of one function's graph in a scan: 65,536 instructions of 4.
pub const MAX_NDS_FUNCTION_BYTES: u64 = 262_144;
/// Edges of one function's graph in a scan: two for each block.
pub const MAX_NDS_FUNCTION_EDGES: u64 = 131_072;
/// Components of a scan unless asked.
pub const DEFAULT_NDS_SCAN_COMPONENTS: u64 = 32;
/// References that a search collects unless asked.
pub const DEFAULT_NDS_XREFS: u64 = 256;
/// Blocks of a search for references or of a proof unless asked.
pub const DEFAULT_NDS_SCAN_BLOCKS: u64 = 128;
/// Instructions of a search for references or of a proof unless asked.
pub const DEFAULT_NDS_SCAN_INSTRUCTIONS: u64 = 2_048;
/// Bytes of a search for references or of a proof unless asked.
pub const DEFAULT_NDS_SCAN_BYTES: u64 = 8_192;
/// Edges of a search for references or of a proof unless asked.
pub const DEFAULT_NDS_SCAN_EDGES: u64 = 512;
/// Call sites of a proof unless asked.
pub const DEFAULT_NDS_PROOF_CALL_SITES: u64 = 256;
/// Functions of a discovery unless asked.
pub const DEFAULT_NDS_FUNCTIONS: u64 = 128;
/// Call sites of a discovery unless asked.
pub const DEFAULT_NDS_CALL_SITES: u64 = 512;
/// Blocks of a discovery unless asked.
pub const DEFAULT_NDS_DISCOVERY_BLOCKS: u64 = 512;
/// Instructions of a discovery unless asked.
pub const DEFAULT_NDS_DISCOVERY_INSTRUCTIONS: u64 = 4_096;
/// Bytes of a discovery unless asked.
pub const DEFAULT_NDS_DISCOVERY_BYTES: u64 = 32_768;
/// Edges of a discovery unless asked.
pub const DEFAULT_NDS_DISCOVERY_EDGES: u64 = 2_048;
/// Hits of a search for a pattern unless asked.
pub const DEFAULT_PATTERN_HITS: u64 = 100;

// ---- emulators under a GDB stub ----

/// Bytes of one packet's payload: what we ask for is at most 1,024 characters long, and stubs say up to 16 KiB.
pub const MAX_GDB_PACKET_BYTES: usize = 16 * 1024;
/// Bytes of memory asked for in one packet: DeSmuME's buffer for the answer ends it at 1,024, mGBA's a little above 512.
pub const MAX_GDB_READ_CHUNK_BYTES: u32 = 512;
/// Bytes of memory that one read gives: a window of work, and 128 packets.
pub const MAX_GDB_READ_BYTES: u32 = 64 * 1024;
/// How often a packet is sent again, or asked for again, that arrived damaged: TCP has a checksum, so once is already strange.
pub const MAX_GDB_RETRANSMISSIONS: u32 = 3;
/// Bytes taken from a stub's socket at once.
pub const GDB_RECEIVE_BYTES: usize = 4_096;
/// Breakpoints that may be set in one processor at once: DeSmuME has room for 100 of all kinds.
pub const MAX_GDB_BREAKPOINTS: usize = 32;
/// Watchpoints that may be set in one processor at once: together with the breakpoints well below DeSmuME's 100.
pub const MAX_GDB_WATCHPOINTS: usize = 16;
/// Executable ranges besides the program's own: as many overlays as are ever loaded together, and more.
pub const MAX_GDB_RANGES: usize = 64;
/// Characters of the name of a range or of a region.
pub const MAX_GDB_NAME_CHARS: usize = 64;
/// Characters of a symbol or of a range's description.
pub const MAX_GDB_LABEL_CHARS: usize = 128;
/// Instructions stepped in one call: a hundred are read by a person or a model; for more there are breakpoints.
pub const MAX_GDB_STEPS: u32 = 100;
/// Bytes shown around the program counter, and at the stack pointer, when a stop is looked at: sixteen words.
pub const GDB_WINDOW_BYTES: u32 = 64;
/// Regions of memory that one stop shows besides its two windows.
pub const MAX_GDB_STOP_REGIONS: usize = 8;
/// Bytes of one such region.
pub const MAX_GDB_STOP_REGION_BYTES: u32 = 4_096;
/// Characters kept of what an emulator writes to each of its two outputs: its last words are those that matter.
pub const MAX_EMULATOR_OUTPUT_BYTES: usize = 64 * 1024;
/// Time an emulator has to end by itself after SIGTERM, in milliseconds: DeSmuME ignores it while it is stopped.
pub const EMULATOR_TERM_GRACE_MS: u64 = 500;
/// Time its process group has to be gone after SIGKILL, in milliseconds: only a process in the kernel's hands takes any.
pub const EMULATOR_KILL_GRACE_MS: u64 = 5_000;
/// Time a stub that somebody else used has for its first answer, in milliseconds: without one, its program is taken to run.
pub const GDB_TAKE_OVER_MS: u64 = 1_000;
/// Time a stub has to read the last word before its connection is closed, in milliseconds: DeSmuME reads once a frame, some 17.
pub const GDB_LEAVE_MS: u64 = 100;
/// Time a stub has for one answer, in milliseconds: DeSmuME needs less than one, mGBA answers once a frame, some 90.
pub const GDB_EXCHANGE_TIMEOUT_MS: u64 = 3_000;

// ---- Nintendo DS live tools: ranges that scripts rely on ----

/// Shortest time that a call may wait for a program, in milliseconds.
pub const MIN_LIVE_TIMEOUT_MS: u64 = 100;
/// Longest time that a call may wait for a program, in milliseconds.
pub const MAX_LIVE_TIMEOUT_MS: u64 = 30_000;
/// Longest time for a pause, a step or a context, in milliseconds.
pub const MAX_LIVE_SHORT_TIMEOUT_MS: u64 = 5_000;
/// Time that a run or a readiness is waited for unless asked, in milliseconds.
pub const DEFAULT_LIVE_TIMEOUT_MS: u64 = 10_000;
/// Time for one step or a pause unless asked, in milliseconds.
pub const DEFAULT_LIVE_STEP_MS: u64 = 1_000;
/// Time for a context or a correlation unless asked, in milliseconds.
pub const DEFAULT_LIVE_CONTEXT_MS: u64 = 3_000;
/// Lowest port of a stub: lower ones belong to the system.
pub const MIN_GDB_PORT: u64 = 1_024;
/// Highest port.
pub const MAX_GDB_PORT: u64 = 65_535;
/// Port of the ARM9's stub unless asked.
pub const DEFAULT_ARM9_GDB_PORT: u64 = 20_000;
/// Regions of one evidence file.
pub const MAX_EVIDENCE_REGIONS: usize = 16;
/// Instructions shown around a correlated stop, at most.
pub const MAX_NEARBY_INSTRUCTIONS: u64 = 32;
/// Instructions shown around a correlated stop unless asked.
pub const DEFAULT_NEARBY_INSTRUCTIONS: u64 = 8;
/// References shown of a correlated stop, at most.
pub const MAX_CORRELATED_REFERENCES: u64 = 64;
/// References shown of a correlated stop unless asked.
pub const DEFAULT_CORRELATED_REFERENCES: u64 = 16;
/// Bytes compared at the program counter to tell which overlay is loaded: some functions' length.
pub const RESIDENCY_WINDOW_BYTES: u32 = 256;
/// Bytes of an overlay that is compared whole: 32 packets, some milliseconds.
pub const RESIDENCY_WHOLE_BYTES: u32 = 16 * 1024;
/// Further places of an overlay that are compared, spread evenly over its image.
pub const RESIDENCY_SAMPLES: u32 = 8;
/// Bytes compared at each of these places.
pub const RESIDENCY_SAMPLE_BYTES: u32 = 64;
/// Characters of an emulator's output in one answer, of each of its two outputs: its last words.
pub const MAX_EMULATOR_OUTPUT_SHOWN: usize = 4_000;

// ---- VICE and its connector ----

/// Bytes of one answer of a VICE connector: a full display as base64 has a quarter of it.
pub const MAX_VICE_RESPONSE_BYTES: usize = 16 * 1024 * 1024;
/// Events that a connector remembers, the last ones.
pub const MAX_VICE_EVENTS: usize = 1_024;
/// Banks of memory that VICE may name: the C64 has six.
pub const MAX_VICE_BANKS: usize = 4_096;
/// Checkpoints that may be set in VICE at once.
pub const MAX_VICE_CHECKPOINTS: usize = 4_096;
/// Bytes of one read or write of memory through a connector: all that the 6510 addresses.
pub const MAX_VICE_TRANSFER_BYTES: usize = 65_536;
/// Bytes of a read through a connector that names no number.
pub const DEFAULT_VICE_READ_BYTES: usize = 4_096;
/// Time for one call of a connector that names none, in milliseconds.
pub const DEFAULT_VICE_TIMEOUT_MS: u64 = 10_000;
/// Longest time for one call of a connector, in milliseconds: with the allowances of the layers above it stays below the minute
/// after which MCP clients give up.
pub const MAX_VICE_TIMEOUT_MS: u64 = 60_000;
/// Longest time that a tool asks a connector for, in milliseconds: the layer above adds its own and has one minute.
pub const MAX_VICE_TOOL_TIMEOUT_MS: u64 = 55_000;
/// Time that each layer above a connector waits longer than the one below, in milliseconds, so that the lowest one answers.
pub const VICE_LAYER_MS: u64 = 5_000;
/// Bytes of one frame of VICE's binary monitor: sixteen times the largest known one, a display of 160,000 pixels.
pub const MAX_VICE_FRAME_BYTES: usize = 4 * 1024 * 1024;
/// Pixels of a display: what fits into a frame.
pub const MAX_VICE_DISPLAY_PIXELS: usize = 2 * 1024 * 1024;
/// Requests without an answer whose late answer is still known as such.
pub const MAX_VICE_ABANDONED: usize = 4_096;
/// Keys that VICE's keyboard is fed at once: their number has 8 bits.
pub const MAX_C64_KEYS: usize = 255;
/// Bytes of a snapshot of VICE: the machine with its drives and disks.
pub const MAX_VICE_SNAPSHOT_BYTES: u64 = 16 * 1024 * 1024;
/// Instructions that one call disassembles in VICE.
pub const MAX_VICE_INSTRUCTIONS: u64 = 1_024;
/// Instructions when a call does not say how many.
pub const DEFAULT_VICE_INSTRUCTIONS: u64 = 32;
/// Places that a search of VICE's memory tells.
pub const MAX_VICE_MATCHES: u64 = 1_024;
/// Places when a call does not say how many.
pub const DEFAULT_VICE_MATCHES: u64 = 64;
/// Bytes of a pattern that is searched in VICE's memory.
pub const MAX_VICE_PATTERN_BYTES: usize = 256;
/// Banks that one search reads.
pub const MAX_VICE_SEARCH_BANKS: usize = 8;
/// Bytes of memory in one command of the monitor: the length in an answer has 16 bits.
pub const MAX_VICE_CHUNK_BYTES: usize = 65_535;
/// Bytes taken from VICE's socket at once: 64 KiB of memory with its frame in one piece.
pub const VICE_RECEIVE_BYTES: usize = 128 * 1024;
/// Events before the one waited for that an answer tells: as many as somebody reads.
pub const MAX_VICE_PRECEDING: usize = 64;
/// Time until the connection to VICE must stand, its first answers included, in milliseconds: a loaded machine takes a frame or
/// two for each.
pub const VICE_CONNECT_TIMEOUT_MS: u64 = 10_000;
/// Time that an emulator which was just started has until its monitor answers, in milliseconds.
pub const VICE_START_TIMEOUT_MS: u64 = 60_000;
/// Time that `doctor` takes to see whether a monitor is there, in milliseconds: on this machine it is there at once.
pub const VICE_LOOK_MS: u64 = 500;
/// Time for taking our checkpoints away before the connection is closed, in milliseconds.
pub const VICE_CLOSE_TIMEOUT_MS: u64 = 3_000;
/// Bytes of one request to a connector: 64 KiB as digits, eight times.
pub const MAX_VICE_REQUEST_BYTES: usize = 1024 * 1024;
/// Calls that a connector has in work at once: more only wait for the one socket.
pub const MAX_VICE_CALLS: usize = 64;
/// Port of a connector on loopback unless asked: that of Ghidra's plug-in, because tools of the contract reach both by one address.
pub const DEFAULT_VICE_CONNECTOR_PORT: u16 = 8_089;
