//! The steps of the investigation and how they are printed.

use super::client::{Answer, McpClient};
use super::focus::Focus;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// driftgame for 64-bit Linux, built from `fixtures/driftgame`; empty where it could not be built.
pub const GAME_64: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/driftgame64"));
/// The same for 32-bit.
pub const GAME_32: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/driftgame32"));

const TITLE: &str = "driftgame";

/// What the demo is asked for.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DemoOptions {
    /// Use no display even when there is one: focus events come from a file, and there are no pictures.
    #[arg(long)]
    pub headless: bool,
    /// Run the 32-bit build of the game.
    #[arg(long)]
    pub bits32: bool,
    /// Keep the pictures in this folder (default: the folder for temporary files).
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
}

/// The game, unpacked into a folder of its own that goes with this value.
#[derive(Debug)]
pub struct GameFile {
    folder: PathBuf,
    /// The executable.
    pub path: PathBuf,
}

impl GameFile {
    /// Unpacks the game.
    ///
    /// # Errors
    /// A sentence.
    pub fn unpack(bits32: bool) -> Result<Self, String> {
        let bytes = if bits32 { GAME_32 } else { GAME_64 };
        if bytes.is_empty() {
            return Err(
                "this build carries no such game: it needs an x86-64 Linux machine with a C compiler".to_owned()
            );
        }
        let folder = std::env::temp_dir().join(format!("retroscope-demo-{}", std::process::id()));
        let path = folder.join(TITLE);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .and_then(|()| fs::write(&path, bytes))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o700)))
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder, path })
    }

    /// A file beside the executable.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for GameFile {
    fn drop(&mut self) {
        // Left-overs in the folder for temporary files harm nobody, and there is no one to tell.
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Prints each call and answer, with a sentence on what was learnt.
struct Story {
    client: McpClient,
}

impl Story {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Answer, String> {
        println!("\n  → {tool} {arguments}");
        let answer = self.client.call(tool, arguments).await.map_err(|error| format!("{tool}: {error}"))?;
        println!("  ← {}", shorten(&answer.json));
        if let Some(png) = &answer.png {
            println!("    and a picture, {} bytes of PNG", png.len());
        }
        Ok(answer)
    }
}

fn say(text: &str) {
    println!("\n{text}");
}

/// An answer as one line, without what only repeats or is long.
fn shorten(json: &Value) -> String {
    let mut short = json.clone();
    if let Some(object) = short.as_object_mut() {
        object.remove("status");
        if let Some(stop) = object.get_mut("stop").and_then(Value::as_object_mut) {
            stop.remove("registers");
        }
    }
    let mut line: String = short.to_string().chars().take(900).collect();
    if line.chars().count() == 900 {
        line.push('…');
    }
    line
}

/// Plays the whole investigation and prints it.
///
/// # Errors
/// A sentence, when a step did not show what it must show.
pub async fn run(options: DemoOptions) -> Result<(), String> {
    let game = GameFile::unpack(options.bits32)?;
    let events = game.beside("events");
    let focus = if options.headless {
        Focus::file(&events)?
    } else {
        match Focus::display() {
            Ok(focus) => focus,
            Err(why) => {
                println!("({why}; going on without one: focus events come from a file and there are no pictures)");
                Focus::file(&events)?
            }
        }
    };
    let program = std::env::current_exe().map_err(|error| format!("the path of this program is unknown: {error}"))?;
    let client = McpClient::start(&program, &["serve", "--with-agent", "--tool-profile", "debug", "--log", "error"])
        .await
        .map_err(|error| error.to_string())?;
    let story = Story { client };
    let outcome = investigate(&story, &game, &focus, &options).await;
    if outcome.is_err() {
        // The game must not outlive a demo that failed; the reason is in `outcome`.
        drop(story.client.call("terminate", json!({})).await);
    }
    story.client.close(Duration::from_secs(5)).await;
    outcome
}

async fn investigate(story: &Story, game: &GameFile, focus: &Focus, options: &DemoOptions) -> Result<(), String> {
    let on_display = matches!(focus, Focus::Display { .. });
    let mut arguments = vec!["--start".to_owned(), "playing".to_owned()];
    if let Focus::File(path) = focus {
        arguments.extend(["--headless".to_owned(), "--events".to_owned(), path.display().to_string()]);
    }

    say("A game falls back to its menu after alt-tab, though somebody was playing. Who does that?\n\
         It is started under the debugger and stops before its first instruction.");
    story.call("launch", json!({"path": game.path, "args": arguments, "if_running": "start_new"})).await?;

    say("Two seconds of play: a breakpoint on the frame function, with a condition that only holds at frame 60.");
    story
        .call(
            "set_breakpoint",
            json!({"addr": "game_frame", "one_shot": true,
                   "condition": {"memory": "g_frame_count", "size": 4, "op": ">=", "value": 60}}),
        )
        .await?;
    let stop = story.call("continue_execution", json!({"timeout": 20})).await?;
    expect(&stop, "state", "stopped")?;
    let state = story.call("read_memory", json!({"addr": "g_state", "length": 4})).await?;
    say(&format!("The state variable holds {}: playing.", first_byte(&state)?));
    if on_display {
        picture(story, options, "playing").await?;
    }

    say("A hardware watchpoint on the state. While the game is simply played, nothing writes it.");
    story.call("set_watchpoint", json!({"addr": "g_state", "size": 4, "mode": "write"})).await?;
    let quiet = story.call("continue_execution", json!({"timeout": 1})).await?;
    expect(&quiet, "state", "running")?;

    say("The player switches to another program. The game goes grey; still nobody writes the state.");
    focus.away()?;
    let quiet = story.call("continue_execution", json!({"timeout": 1})).await?;
    expect(&quiet, "state", "running")?;

    say("And back again.");
    focus.back(TITLE)?;
    let stop = story.call("continue_execution", json!({"timeout": 20})).await?;
    expect(&stop, "state", "stopped")?;
    let hit = stop.json.pointer("/stop/watchpoints/0").ok_or("the stop names no watchpoint")?;
    let text = |pointer: &str| hit.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned();
    let (writer, location) = (text("/writer/addr"), text("/writer/location"));
    say(&format!(
        "Caught: `{}` at {writer}, in {location}, changed the state from {} (playing) to {} (menu).",
        text("/writer/text"),
        text("/old_value"),
        text("/new_value")
    ));
    if !location.starts_with("on_reactivate") {
        return Err(format!("the writer was expected in on_reactivate, not in {location}"));
    }

    say("What stands around it, and where did the value come from?");
    story.call("disassemble", json!({"addr": "on_reactivate", "count": 12})).await?;
    story.call("backtrace", json!({"limit": 6})).await?;
    let pointer = story.call("read_memory", json!({"addr": "g_saved_state_ptr", "length": 4})).await?;
    let slot = little_endian(&pointer)?;
    let record = story.call("read_memory", json!({"addr": format!("{slot:#x}"), "length": 16})).await?;
    let kind: String = bytes(&record)?.iter().take(4).map(|&byte| char::from(byte)).collect();
    say(&format!(
        "The record that the pointer leads to is marked `{kind}`, not `SAVE`: its slot was given to something else while the\n\
         game was away. The pointer is stale, and the reactivation handler believes it. That is the bug."
    ));

    say("The game goes on, in the menu that nobody asked for.");
    story.call("remove_watchpoint", json!({"slot": 0})).await?;
    story.call("continue_execution", json!({"timeout": 0.5})).await?;
    if on_display {
        picture(story, options, "menu").await?;
    }
    story.call("terminate", json!({})).await?;
    say("Done.");
    Ok(())
}

async fn picture(story: &Story, options: &DemoOptions, name: &str) -> Result<(), String> {
    let answer = story.call("screenshot", json!({"title": TITLE})).await?;
    let png = answer.png.ok_or("the screenshot holds no picture")?;
    let folder = options.pictures.clone().unwrap_or_else(std::env::temp_dir);
    let path: &Path = &folder.join(format!("driftgame-{name}.png"));
    fs::write(path, png).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("    saved as {}", path.display());
    Ok(())
}

fn expect(answer: &Answer, key: &str, value: &str) -> Result<(), String> {
    let found = answer.json.get(key).and_then(Value::as_str).unwrap_or("nothing");
    if found == value { Ok(()) } else { Err(format!("`{key}` was expected to be {value}, and is {found}")) }
}

/// The bytes of a `read_memory` answer, from its hexadecimal rows.
fn bytes(answer: &Answer) -> Result<Vec<u8>, String> {
    let rows = answer.json.get("hex").and_then(Value::as_array).ok_or("the answer has no `hex` rows")?;
    let mut bytes = Vec::new();
    for row in rows.iter().filter_map(Value::as_str) {
        let digits = row.split_once("  ").and_then(|(_, rest)| rest.split('|').next()).unwrap_or_default();
        for pair in digits.split_whitespace() {
            bytes.push(u8::from_str_radix(pair, 16).map_err(|_| format!("`{row}` is no row of hexadecimal bytes"))?);
        }
    }
    Ok(bytes)
}

fn first_byte(answer: &Answer) -> Result<u8, String> {
    bytes(answer)?.first().copied().ok_or_else(|| "the answer holds no byte".to_owned())
}

fn little_endian(answer: &Answer) -> Result<u64, String> {
    Ok(bytes(answer)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}
