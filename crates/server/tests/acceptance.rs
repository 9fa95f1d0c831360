//! The product's acceptance over MCP, on the real game under the real agent: what a user's agent would do, step by step.
//! Needs an X display ($DISPLAY); `cargo xtask test` gives it one. With RETROSCOPE_TEST_WINE and RETROSCOPE_TEST_AGENT the same
//! goes on with the game's Windows build, the Windows agent under that Wine, and the server here.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use retroscope::demo::client::{Answer, ClientError, McpClient};
use retroscope::demo::focus::Focus;
use retroscope::demo::{GAME_32, GAME_64};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

struct Session {
    client: Option<McpClient>,
    folder: tempfile::TempDir,
    bits32: bool,
    /// The agent, when it is not the server's child.
    wine_agent: Option<std::process::Child>,
    game_pid: std::cell::Cell<Option<u64>>,
}

/// A test that fails half-way must not leave a game behind: the agent lets it go unharmed.
impl Drop for Session {
    fn drop(&mut self) {
        if let Some(agent) = &mut self.wine_agent {
            drop(agent.kill());
            drop(agent.wait());
            // Its numbers of processes are not Linux'.
            return;
        }
        if let Some(pid) = self.game_pid.get() {
            drop(std::process::Command::new("kill").args(["-9", &pid.to_string()]).status());
        }
    }
}

fn wine() -> Option<std::ffi::OsString> {
    std::env::var_os("RETROSCOPE_TEST_WINE")
}

/// Starts the Windows agent and gives it with its address.
fn start_wine_agent() -> (std::process::Child, String) {
    let mut command = std::process::Command::new(wine().unwrap());
    command.arg(std::env::var_os("RETROSCOPE_TEST_AGENT").expect("RETROSCOPE_TEST_AGENT names retroscope-agent.exe"));
    command.args(["--port", "0"]).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let address = line.trim().strip_prefix("retroscope-agent listening on ").expect(&line).to_owned();
    (child, address)
}

impl Session {
    async fn start(bits32: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if wine().is_some() {
            let fixtures = PathBuf::from(std::env::var_os("RETROSCOPE_FIXTURES").unwrap());
            let game = fixtures.join(if bits32 { "driftgame32.exe" } else { "driftgame64.exe" });
            std::fs::copy(game, folder.path().join("driftgame.exe")).unwrap();
            let (agent, address) = start_wine_agent();
            let program = Path::new(env!("CARGO_BIN_EXE_retroscope"));
            let arguments = ["serve", "--agent", &address, "--tool-profile", "debug"];
            let client = Some(McpClient::start(program, &arguments).await.unwrap());
            return Self { client, folder, bits32, wine_agent: Some(agent), game_pid: std::cell::Cell::new(None) };
        }
        let path = folder.path().join("driftgame");
        let bytes = if bits32 { GAME_32 } else { GAME_64 };
        assert!(!bytes.is_empty(), "the game could not be built for this test");
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_retroscope"));
        let client = McpClient::start(program, &["serve", "--with-agent", "--tool-profile", "debug"]).await.unwrap();
        Self { client: Some(client), folder, bits32, wine_agent: None, game_pid: std::cell::Cell::new(None) }
    }

    fn client(&self) -> &McpClient {
        self.client.as_ref().unwrap()
    }

    /// The game as the agent sees it.
    fn game(&self) -> PathBuf {
        match wine() {
            Some(_) => format!("Z:{}\\driftgame.exe", self.folder.path().display()).replace('/', "\\").into(),
            None => self.folder.path().join("driftgame"),
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.client().call(tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{tool} {arguments}: {error}"))
    }

    async fn refused(&self, tool: &str, arguments: Value) -> String {
        match self.client().call(tool, arguments.clone()).await {
            Err(ClientError::Tool(text)) => text,
            other => panic!("{tool} {arguments} was to be refused: {other:?}"),
        }
    }

    async fn launch(&self, arguments: &[&str]) {
        let answer =
            self.call("launch", json!({"path": self.game(), "args": arguments, "if_running": "start_new"})).await;
        self.game_pid.set(answer.json["pid"].as_u64());
        assert_eq!(answer.json["state"], "stopped");
        assert_eq!(answer.json["reason"], "entry");
    }

    async fn go_on(&self) -> Value {
        let answer = self.call("continue_execution", json!({"timeout": 20})).await;
        assert_eq!(answer.json["state"], "stopped", "{}", answer.json);
        answer.json
    }

    async fn u32_at(&self, address: &str) -> u32 {
        let answer = self.call("read_memory", json!({"addr": address, "length": 4, "format": "base64"})).await;
        let data = answer.json["data"].as_str().unwrap();
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    /// The argument of `hot_step` by the game's README: edi in the 64-bit build (on Windows ecx, as its calls have it), ecx in
    /// the 32-bit build.
    fn argument(&self) -> &'static str {
        match (self.bits32, wine().is_some()) {
            (true, _) => "ecx",
            (false, true) => "rcx",
            (false, false) => "rdi",
        }
    }

    async fn end(mut self) {
        self.call("terminate", json!({})).await;
        self.game_pid.set(None);
        self.client.take().unwrap().close(Duration::from_secs(10)).await;
    }
}

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

async fn breakpoint_with_expected_state(bits32: bool) {
    let session = Session::start(bits32).await;
    session.launch(&["--headless", "--spin-loop"]).await;
    session.call("set_breakpoint", json!({"addr": "hot_step"})).await;
    // hot_loop calls hot_step(i) for i = 0, 1, 2, ... and stores its result i + 1 in g_hot_count before the next call.
    for i in 0..50_u32 {
        let stop = session.go_on().await;
        let address = stop["pc"].as_str().unwrap();
        assert_eq!(stop["reason"], format!("breakpoint@{address}"));
        assert_eq!(stop["stop"]["hits"], i + 1);
        assert_eq!(stop["stop"]["symbol"], "hot_step");
        assert_eq!(hex(&stop["stop"]["registers"][session.argument()]), u64::from(i));
        assert_eq!(session.u32_at("g_hot_count").await, i);
        let registers = session.call("get_registers", json!({})).await.json;
        assert_eq!(hex(&registers["registers"][session.argument()]), u64::from(i));
    }
    session.end().await;
}

async fn condition_first_false_then_true(bits32: bool) {
    let session = Session::start(bits32).await;
    session.launch(&["--headless", "--spin-loop"]).await;
    let condition = json!({"register": session.argument(), "op": "==", "value": 1_000});
    session.call("set_breakpoint", json!({"addr": "hot_step", "condition": condition})).await;
    let stop = session.go_on().await;
    assert_eq!(hex(&stop["stop"]["registers"][session.argument()]), 1_000);
    assert_eq!(stop["stop"]["hits"], 1, "a thousand false hits are not counted");
    assert_eq!(session.u32_at("g_hot_count").await, 1_000);
    // Up to the next time that i is 1000 lie 2^32 calls.
    let answer = session.call("continue_execution", json!({"timeout": 0.3})).await;
    assert_eq!(answer.json["state"], "running");
    assert_eq!(answer.json["timed_out"], true);
    let paused = session.call("pause", json!({})).await.json;
    assert_eq!(paused["state"], "stopped");
    assert!(session.u32_at("g_hot_count").await > 1_000, "it ran on through false hits");
    session.end().await;
}

async fn baseline_is_written_once_per_frame(bits32: bool) {
    let session = Session::start(bits32).await;
    session.launch(&["--headless", "--start", "playing"]).await;
    session.call("set_watchpoint", json!({"addr": "g_delta_baseline_ms", "size": 4, "mode": "write"})).await;
    let mut frame = None;
    for _ in 0..60 {
        let stop = session.go_on().await;
        assert_eq!(stop["reason"], "watchpoint@slot0");
        let hit = &stop["stop"]["watchpoints"][0];
        assert_eq!(hit["attribution"], "exact");
        let location = hit["writer"]["location"].as_str().unwrap();
        assert!(location.starts_with("update_delta_time"), "{location}");
        let now = session.u32_at("g_frame_count").await;
        if let Some(before) = frame {
            assert_eq!(now, before + 1, "exactly one write per frame");
        }
        frame = Some(now);
    }
    session.end().await;
}

struct Image {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Image {
    fn decode(png: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut rgb).unwrap();
        assert_eq!((info.color_type, info.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
        rgb.truncate(info.buffer_size());
        Self { width: info.width, height: info.height, rgb }
    }

    fn pixel(&self, x: u32, y: u32) -> u32 {
        let at = ((y * self.width + x) * 3) as usize;
        u32::from_be_bytes([0, self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]])
    }
}

/// What fixtures/driftgame/game.h says the game draws: background, then rectangles over it.
fn check_picture(
    png: &[u8],
    background: u32,
    rectangles: &[(u32, u32, u32, u32, u32)],
    except_rows: std::ops::Range<u32>,
) {
    let image = Image::decode(png);
    assert_eq!((image.width, image.height), (320, 240));
    for y in (0..240).filter(|y| !except_rows.contains(y)) {
        for x in 0..320 {
            let expected = rectangles
                .iter()
                .find(|(_, left, top, width, height)| {
                    (*left..left + width).contains(&x) && (*top..top + height).contains(&y)
                })
                .map_or(background, |rectangle| rectangle.0);
            assert_eq!(image.pixel(x, y), expected, "pixel {x},{y}");
        }
    }
}

const MENU_BAR: (u32, u32, u32, u32, u32) = (0xF0_C040, 40, 100, 240, 40);
const HORIZON: (u32, u32, u32, u32, u32) = (0x80_C080, 0, 0, 320, 8);

async fn screenshot_shows_the_window(bits32: bool) {
    let session = Session::start(bits32).await;
    session.launch(&["--window", "--start", "playing"]).await;
    session
        .call(
            "set_breakpoint",
            json!({"addr": "game_frame", "one_shot": true,
        "condition": {"memory": "g_frame_count", "op": ">=", "value": 20}}),
        )
        .await;
    session.go_on().await;
    let answer = session.call("screenshot", json!({})).await;
    assert_eq!(answer.json["title"], "driftgame");
    let png = answer.png.expect("a picture");
    check_picture(&png, 0x20_5020, &[HORIZON], 112..128);
    let ball = session.u32_at("g_ball_x").await;
    let image = Image::decode(&png);
    for y in 112..128 {
        for x in ball..ball + 16 {
            assert_eq!(image.pixel(x, y), 0xF0_F0F0, "the ball at {x},{y}");
        }
    }
    session.end().await;
}

async fn alt_tab_investigation(bits32: bool) {
    let session = Session::start(bits32).await;
    let focus = Focus::display().unwrap();
    session.launch(&["--window", "--start", "playing"]).await;
    session
        .call(
            "set_breakpoint",
            json!({"addr": "game_frame", "one_shot": true,
        "condition": {"memory": "g_frame_count", "op": ">=", "value": 10}}),
        )
        .await;
    session.go_on().await;
    assert_eq!(session.u32_at("g_state").await, 1, "playing");
    session.call("set_watchpoint", json!({"addr": "g_state"})).await;
    if wine().is_some() {
        // Without a window manager nobody has given it the focus yet.
        focus.back("driftgame").unwrap();
    }
    let quiet = session.call("continue_execution", json!({"timeout": 0.5})).await.json;
    assert_eq!(quiet["state"], "running", "nobody writes the state in play");
    focus.away().unwrap();
    let quiet = session.call("continue_execution", json!({"timeout": 0.5})).await.json;
    assert_eq!(quiet["state"], "running", "losing the focus does not write it either");
    focus.back("driftgame").unwrap();
    let stop = session.call("continue_execution", json!({"timeout": 20})).await.json;
    if stop["state"] != "stopped" {
        let (state, active) = (session.u32_at("g_state").await, session.u32_at("g_active").await);
        let (lost, frames) = (session.u32_at("g_focus_lost_count").await, session.u32_at("g_frame_count").await);
        panic!("no stop: g_state {state}, g_active {active}, focus lost {lost} times, frame {frames}");
    }
    let hit = &stop["stop"]["watchpoints"][0];
    assert_eq!(hit["attribution"], "exact");
    assert!(hit["writer"]["location"].as_str().unwrap().starts_with("on_reactivate"), "{hit}");
    assert_eq!(hex(&hit["old_value"]), 1, "playing");
    assert_eq!(hex(&hit["new_value"]), 0, "menu");
    let frames = session.call("backtrace", json!({})).await.json;
    let callers: Vec<&str> =
        frames["frames"].as_array().unwrap().iter().filter_map(|frame| frame["location"].as_str()).collect();
    assert!(callers.iter().any(|location| location.starts_with("main_loop")), "{callers:?}");
    // The record that the stale pointer leads to: 16 bytes, its kind first, as game.h lays them out.
    let record = session.u32_at("g_saved_state_ptr").await;
    let kind = session.u32_at(&format!("{record:#x}")).await;
    assert_eq!(kind, u32::from_le_bytes(*b"DUST"), "the slot is no longer a saved state");
    assert_eq!(session.u32_at("g_focus_lost_count").await, 1);
    session.call("remove_watchpoint", json!({"addr": "g_state"})).await;
    let quiet = session.call("continue_execution", json!({"timeout": 0.5})).await.json;
    assert_eq!(quiet["state"], "running");
    let png = session.call("screenshot", json!({"title": "driftgame"})).await.png.expect("a picture");
    check_picture(&png, 0x10_2040, &[MENU_BAR], 0..0);
    session.end().await;
}

async fn the_fifth_watchpoint_is_refused(bits32: bool) {
    let session = Session::start(bits32).await;
    session.launch(&["--headless"]).await;
    let variables = ["g_state", "g_delta_ms", "g_frame_count", "g_score"];
    for (slot, variable) in variables.iter().enumerate() {
        let answer = session.call("set_watchpoint", json!({"addr": variable})).await.json;
        assert_eq!(answer["slot"], slot);
    }
    let text = session.refused("set_watchpoint", json!({"addr": "g_ball_x"})).await;
    assert!(text.contains("all 4 hardware debug registers (DR0-DR3) are in use by"), "{text}");
    // The four addresses that the game's README fixes.
    for address in ["0x480000", "0x480008", "0x48000c", "0x480010"] {
        assert!(text.contains(address), "{address} in {text}");
    }
    session.call("remove_watchpoint", json!({"slot": 1})).await;
    assert_eq!(session.call("set_watchpoint", json!({"addr": "g_ball_x"})).await.json["slot"], 1);
    session.end().await;
}

async fn unmapped_memory_is_refused(bits32: bool) {
    let session = Session::start(bits32).await;
    session.launch(&["--headless"]).await;
    let text = session.refused("read_memory", json!({"addr": "0x10", "length": 16})).await;
    assert!(text.contains("address_unmapped") && text.contains("0x10"), "{text}");
    // Where the mapping that holds the variables ends, by the kernel's own list: 16 bytes before are readable, none after.
    // A Windows program maps its sections page by page, and the variables are the last.
    let end = if wine().is_some() { 0x48_1000 } else { end_of_variables(pid_of(&session).await) };
    let text = session.refused("read_memory", json!({"addr": format!("{:#x}", end - 16), "length": 32})).await;
    assert!(text.contains("address_unmapped") && text.contains(&format!("{end:#x}")), "{end:#x} in {text}");
    assert!(text.contains("\"readable\":16"), "{text}");
    session.end().await;
}

fn end_of_variables(pid: u64) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", pid)).unwrap();
    let mut end = 0x48_0000;
    for line in maps.lines() {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        if u64::from_str_radix(from, 16).unwrap() <= end {
            end = end.max(u64::from_str_radix(to, 16).unwrap());
        }
    }
    end
}

async fn pid_of(session: &Session) -> u64 {
    session.call("get_status", json!({})).await.json["pid"].as_u64().unwrap()
}

macro_rules! both_builds {
    ($($name:ident),+ $(,)?) => {
        mod bits64 { $(#[tokio::test] async fn $name() { super::$name(false).await; })+ }
        mod bits32 { $(#[tokio::test] async fn $name() { super::$name(true).await; })+ }
    };
}

both_builds!(
    breakpoint_with_expected_state,
    condition_first_false_then_true,
    baseline_is_written_once_per_frame,
    screenshot_shows_the_window,
    alt_tab_investigation,
    the_fifth_watchpoint_is_refused,
    unmapped_memory_is_refused,
);
