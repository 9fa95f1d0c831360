//! The manifest of changes, formats 1 to 3, read strictly: what a key means, which version has it, and where one is wrong.

use serde_json::{Map, Value};

use base::limits;

use super::json;
use crate::component::Processor;
use crate::refusal::Refusal;
use crate::rom::sha256_hex;

/// The word that names the format.
const FORMAT: &str = "re-mcp-nds-mutation";
/// What the manifest has to say before digests of a DSi title may become stale.
pub(super) const STALE_DIGESTS: &str = "stale-dsi-digests";

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its format's version, 1 to 3.
    pub version: u8,
    /// SHA-256 of the ROM that it is about.
    pub source_sha256: String,
    /// Name of the ROM that it makes.
    pub filename: String,
    /// Whether the result is filled up to a card's capacity; always in versions 1 and 2.
    pub pad_to_capacity: bool,
    /// Whether digests of a DSi title may become stale.
    pub stale_digests: bool,
    /// SHA-256 of the canonical text.
    pub sha256: String,
    /// The canonical text.
    pub canonical: String,
    /// What is to be done, in order.
    pub operations: Vec<Operation>,
}

/// A file of the workspace with new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRef {
    /// Its path from the root of the workspace.
    pub path: String,
    /// Its SHA-256.
    pub sha256: String,
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A main program.
    Program(Processor),
    /// An overlay; without a number only for an address that tells which.
    Overlay(Processor, Option<u32>),
    /// An autoload block of a main program.
    Autoload(Processor, u8),
    /// A file by its number.
    File(u32),
    /// A file by its path.
    Path(String),
}

/// Where in its target an edit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locator {
    /// Bytes from the start of what is stored.
    Offset(u32),
    /// An address.
    Address(u32),
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bytes over as many others.
    Bytes {
        /// What they are part of.
        target: Target,
        /// Where.
        at: Locator,
        /// What has to be there.
        expected: Vec<u8>,
        /// What will be there.
        replacement: Vec<u8>,
    },
    /// A whole component, of the same stored size.
    Component {
        /// Which.
        target: Target,
        /// SHA-256 of what is stored.
        original: String,
        /// What will be.
        artifact: ArtifactRef,
    },
    /// A file, of any size.
    File {
        /// Which.
        target: Target,
        /// SHA-256 of what is stored.
        original: String,
        /// What will be.
        artifact: ArtifactRef,
    },
    /// A new file.
    Add {
        /// Its path in the ROM.
        path: String,
        /// Its content.
        artifact: ArtifactRef,
    },
    /// The decoded image of a compressed overlay, or (version 3) of a compressed ARM9 program.
    Decoded {
        /// Which.
        target: Target,
        /// SHA-256 of what is stored.
        stored: String,
        /// SHA-256 of the image.
        runtime: String,
        /// The new image.
        artifact: ArtifactRef,
        /// Bytes at its start that stay uncompressed (version 3).
        plain: u32,
    },
}

impl Operation {
    /// The word of the format.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Bytes { .. } => "replace-bytes",
            Self::Component { .. } => "replace-component",
            Self::File { .. } => "replace-nitrofs-file",
            Self::Add { .. } => "add-nitrofs-file",
            Self::Decoded { target: Target::Program(_), .. } => "replace-decoded-program",
            Self::Decoded { .. } => "replace-decoded-overlay",
        }
    }

    /// The file of the workspace that it needs.
    pub const fn artifact(&self) -> Option<&ArtifactRef> {
        match self {
            Self::Bytes { .. } => None,
            Self::Component { artifact, .. }
            | Self::File { artifact, .. }
            | Self::Add { artifact, .. }
            | Self::Decoded { artifact, .. } => Some(artifact),
        }
    }
}

fn invalid(place: &str, what: &str) -> Refusal {
    let place = if place.is_empty() { "the manifest" } else { place };
    let action = "Correct the manifest at that place; docs/nds-build.md has every key.";
    Refusal::new("mutation-manifest-invalid", format!("{place}: {what}"), action)
}

/// Reads a manifest.
pub fn parse(text: &[u8]) -> Result<Manifest, Refusal> {
    if text.len() as u64 > limits::MAX_MUTATION_MANIFEST_BYTES {
        let most = limits::MAX_MUTATION_MANIFEST_BYTES;
        return Err(invalid("", &format!("it has {} bytes; {most} are allowed", text.len())));
    }
    let mut value = json::parse(text).map_err(|error| invalid("", &error))?;
    normalise(&mut value);
    let mut top = Object::of(&value, "")?;
    if top.text("format")? != FORMAT {
        return Err(invalid("/format", &format!("it has to be \"{FORMAT}\"")));
    }
    let version = match top.number("formatVersion")? {
        version @ 1..=3 => version as u8,
        other => return Err(invalid("/formatVersion", &format!("{other} is none of 1, 2 and 3"))),
    };
    let mut source = top.object("source")?;
    let source_sha256 = source.sha256("sha256")?;
    source.end()?;
    let mut output = top.object("output")?;
    let filename = output.text("filename")?.to_owned();
    check_filename(&filename)?;
    let pad_to_capacity = if version >= 3 { output.flag("padToCapacity")?.unwrap_or(true) } else { true };
    output.end()?;
    let mut stale_digests = false;
    if version >= 3
        && let Some(list) = top.take("acknowledge")
    {
        let list = list.as_array().ok_or_else(|| invalid("/acknowledge", "it has to be a list"))?;
        for (index, word) in list.iter().enumerate() {
            if word.as_str() != Some(STALE_DIGESTS) || index > 0 {
                return Err(invalid(
                    &format!("/acknowledge/{index}"),
                    &format!("only \"{STALE_DIGESTS}\" can stand here, once"),
                ));
            }
            stale_digests = true;
        }
    }
    let list = top.need("operations")?.as_array().ok_or_else(|| invalid("/operations", "it has to be a list"))?;
    if list.is_empty() || list.len() > limits::MAX_MUTATION_OPERATIONS {
        let most = limits::MAX_MUTATION_OPERATIONS;
        return Err(invalid("/operations", &format!("{} operations; 1 to {most} are allowed", list.len())));
    }
    let operations =
        list.iter().enumerate().map(|(index, value)| operation(value, &format!("/operations/{index}"), version));
    let operations = operations.collect::<Result<Vec<_>, _>>()?;
    top.end()?;
    let canonical = json::canonical(&value);
    let sha256 = sha256_hex(canonical.as_bytes());
    Ok(Manifest { version, source_sha256, filename, pad_to_capacity, stale_digests, sha256, canonical, operations })
}

/// Hexadecimal bytes are the same in either case, and so is the identity.
fn normalise(value: &mut Value) {
    let operations = value.get_mut("operations").and_then(Value::as_array_mut);
    for operation in operations.into_iter().flatten() {
        for key in ["expected", "replacement"] {
            if let Some(Value::String(text)) = operation.get_mut(key) {
                text.make_ascii_lowercase();
            }
        }
    }
}

fn operation(value: &Value, place: &str, version: u8) -> Result<Operation, Refusal> {
    let mut object = Object::of(value, place)?;
    let kind = object.text("type")?;
    let operation = match kind {
        "replace-bytes" => {
            let (target, at) = target(object.object("target")?, version, true)?;
            let at =
                at.ok_or_else(|| invalid(&object.at("target"), "one of relativeOffset and runtimeAddress is needed"))?;
            let (expected, replacement) = (object.hex("expected")?, object.hex("replacement")?);
            if expected.len() != replacement.len() {
                let what = format!("{} bytes over {}: both have to be equally many", replacement.len(), expected.len());
                return Err(invalid(&object.at("replacement"), &what));
            }
            Operation::Bytes { target, at, expected, replacement }
        }
        "replace-component" => {
            let (target, _) = target(object.object("target")?, version, false)?;
            let original = object.sha256("expectedOriginalSha256")?;
            Operation::Component { target, original, artifact: object.artifact()? }
        }
        "replace-nitrofs-file" if version >= 2 => {
            let mut place = object.object("target")?;
            let target = file(&mut place)?;
            place.end()?;
            let original = object.sha256("expectedOriginalSha256")?;
            Operation::File { target, original, artifact: object.artifact()? }
        }
        "add-nitrofs-file" if version >= 2 => {
            let path = object.text("path")?.to_owned();
            check_rom_path(&path, &object.at("path"))?;
            Operation::Add { path, artifact: object.artifact()? }
        }
        "replace-decoded-overlay" | "replace-decoded-program"
            if version >= 3 || (version == 2 && kind.ends_with("overlay")) =>
        {
            let mut place = object.object("target")?;
            let processor = place.processor()?;
            let target = if kind.ends_with("overlay") {
                Target::Overlay(processor, Some(place.number("overlayId")?))
            } else if processor == Processor::Arm9 {
                Target::Program(processor)
            } else {
                return Err(invalid(&place.at("processor"), "only the program of the arm9 is ever compressed"));
            };
            place.end()?;
            let (stored, runtime) = (object.sha256("expectedStoredSha256")?, object.sha256("expectedRuntimeSha256")?);
            let artifact = object.artifact()?;
            let plain = if version >= 3 { object.maybe_number("ignoreBoundary")?.unwrap_or(0) } else { 0 };
            Operation::Decoded { target, stored, runtime, artifact, plain }
        }
        other => {
            let shown: String = other.chars().take(64).collect();
            return Err(invalid(&object.at("type"), &format!("version {version} has no operation `{shown}`")));
        }
    };
    object.end()?;
    Ok(operation)
}

/// What an operation is about, and where in it, for edits of bytes.
fn target(mut object: Object<'_>, version: u8, located: bool) -> Result<(Target, Option<Locator>), Refusal> {
    let word = object.text("component")?;
    let (target, has_addresses) = match word {
        "arm9" => (Target::Program(Processor::Arm9), true),
        "arm7" => (Target::Program(Processor::Arm7), true),
        "arm9-overlay" | "arm7-overlay" => {
            let processor = if word == "arm9-overlay" { Processor::Arm9 } else { Processor::Arm7 };
            let id = object.maybe_number("overlayId")?;
            if id.is_none() && !(located && object.has("runtimeAddress")) {
                return Err(invalid(&object.at("overlayId"), "it is missing"));
            }
            (Target::Overlay(processor, id), true)
        }
        "arm9-autoload" | "arm7-autoload" if version >= 3 && located => {
            let processor = if word == "arm9-autoload" { Processor::Arm9 } else { Processor::Arm7 };
            let index = object.number("autoloadIndex")?;
            let index = u8::try_from(index)
                .map_err(|_| invalid(&object.at("autoloadIndex"), "no program has so many blocks"))?;
            (Target::Autoload(processor, index), true)
        }
        "nitrofs-file" => (Target::File(object.number("fileId")?), false),
        "nitrofs-path" => (Target::Path(object.text("filePath")?.to_owned()), false),
        other => {
            let shown: String = other.chars().take(64).collect();
            return Err(invalid(
                &object.at("component"),
                &format!("`{shown}` is nothing that version {version} can change here"),
            ));
        }
    };
    let mut at = None;
    if located {
        at = object.maybe_number("relativeOffset")?.map(Locator::Offset);
        let address = if has_addresses { object.maybe_number("runtimeAddress")? } else { None };
        if let Some(address) = address {
            if at.is_some() {
                return Err(invalid(&object.at("runtimeAddress"), "only one of it and relativeOffset can stand here"));
            }
            at = Some(Locator::Address(address));
        }
    }
    object.end()?;
    Ok((target, at))
}

fn file(object: &mut Object<'_>) -> Result<Target, Refusal> {
    match (object.maybe_number("fileId")?, object.take("filePath")) {
        (Some(id), None) => Ok(Target::File(id)),
        (None, Some(Value::String(path))) => Ok(Target::Path(path.clone())),
        _ => Err(invalid(&object.place, "either fileId or filePath is needed")),
    }
}

fn check_filename(name: &str) -> Result<(), Refusal> {
    let stem = name.strip_suffix(".nds").unwrap_or_default();
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let fits = (1..=limits::MAX_NDS_NAME_BYTES - 4).contains(&stem.len());
    if fits && stem.chars().all(allowed) && stem.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(invalid("/output/filename", "it has to match ^[A-Za-z0-9][A-Za-z0-9._-]{0,122}\\.nds$"))
}

/// A path of a new file in the ROM.
fn check_rom_path(path: &str, place: &str) -> Result<(), Refusal> {
    let name = |name: &str| {
        (1..=limits::MAX_NDS_NAME_BYTES).contains(&name.len())
            && !matches!(name, "." | "..")
            && name.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'\\')
    };
    if path.len() <= limits::MAX_NDS_PATH_BYTES && path.split('/').all(name) {
        return Ok(());
    }
    let what = "it has to be names of 1 to 127 printable ASCII characters, joined by /, and none of them . or ..";
    Err(invalid(place, what))
}

/// A path of a file in the workspace that means the same everywhere.
fn check_artifact_path(path: &str, place: &str) -> Result<(), Refusal> {
    let segment = |name: &str| {
        !matches!(name, "" | "." | "..")
            && !name
                .chars()
                .any(|one| one.is_control() || matches!(one, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|'))
    };
    if path.len() <= limits::MAX_NDS_PATH_BYTES && path.split('/').all(segment) {
        return Ok(());
    }
    Err(invalid(place, "it has to be a path from the root of the workspace with /, without . and .."))
}

/// An object whose keys are taken one by one, so that those left are the unknown ones.
struct Object<'a> {
    map: &'a Map<String, Value>,
    place: String,
    taken: Vec<&'static str>,
}

impl<'a> Object<'a> {
    fn of(value: &'a Value, place: &str) -> Result<Self, Refusal> {
        let map = value.as_object().ok_or_else(|| invalid(place, "it has to be an object"))?;
        Ok(Self { map, place: place.to_owned(), taken: Vec::new() })
    }

    fn at(&self, key: &str) -> String {
        json::pointer(&self.place, key)
    }

    fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Value> {
        self.taken.push(key);
        self.map.get(key)
    }

    fn need(&mut self, key: &'static str) -> Result<&'a Value, Refusal> {
        self.take(key).ok_or_else(|| invalid(&self.at(key), "it is missing"))
    }

    fn object(&mut self, key: &'static str) -> Result<Object<'a>, Refusal> {
        let place = self.at(key);
        Object::of(self.need(key)?, &place)
    }

    fn text(&mut self, key: &'static str) -> Result<&'a str, Refusal> {
        self.need(key)?.as_str().ok_or_else(|| invalid(&self.at(key), "it has to be a string"))
    }

    fn flag(&mut self, key: &'static str) -> Result<Option<bool>, Refusal> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| invalid(&self.at(key), "it has to be true or false"))
    }

    fn number(&mut self, key: &'static str) -> Result<u32, Refusal> {
        self.maybe_number(key)?.ok_or_else(|| invalid(&self.at(key), "it is missing"))
    }

    fn maybe_number(&mut self, key: &'static str) -> Result<Option<u32>, Refusal> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| invalid(&self.at(key), "it has to be a whole number from 0 to 4294967295"))
    }

    fn processor(&mut self) -> Result<Processor, Refusal> {
        match self.text("processor")? {
            "arm9" => Ok(Processor::Arm9),
            "arm7" => Ok(Processor::Arm7),
            _ => Err(invalid(&self.at("processor"), "it has to be arm9 or arm7")),
        }
    }

    fn sha256(&mut self, key: &'static str) -> Result<String, Refusal> {
        let text = self.text(key)?;
        if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Ok(text.to_owned());
        }
        Err(invalid(&self.at(key), "it has to be 64 lowercase hexadecimal digits"))
    }

    fn hex(&mut self, key: &'static str) -> Result<Vec<u8>, Refusal> {
        let text = self.text(key)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        bytes
            .filter(|bytes| !bytes.is_empty())
            .ok_or_else(|| invalid(&self.at(key), "it has to be hexadecimal digits, two for each byte, and not empty"))
    }

    fn artifact(&mut self) -> Result<ArtifactRef, Refusal> {
        let mut object = self.object("replacement")?;
        let path = object.text("artifact")?.to_owned();
        check_artifact_path(&path, &object.at("artifact"))?;
        let sha256 = object.sha256("sha256")?;
        object.end()?;
        Ok(ArtifactRef { path, sha256 })
    }

    fn end(&self) -> Result<(), Refusal> {
        match self.map.keys().find(|key| !self.taken.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(invalid(&self.at(key), "there is no such key here in this version")),
        }
    }
}
