//! The contract `c64.vice/1` as plain data: methods, parameters, capabilities. The connector serves it, and the tools check
//! a connector against it, so that both mean the same.

use base::limits;

/// Name of the protocol, as `capabilities` gives it.
pub const PROTOCOL: &str = "c64.vice";

/// Name and major version of the envelope.
pub const API: &str = "c64.vice/1";

/// Major version of the contract: another one is another contract.
pub const API_MAJOR: u32 = 1;

/// Minor version of the contract: a higher one has everything of a lower.
pub const API_MINOR: u32 = 0;

/// Revision of the surface within the version; 2 brought `display.capture`.
pub const SURFACE_REVISION: u32 = 2;

/// What the names of all methods begin with.
pub const NAMESPACE: &str = "c64_vice_v1_";

/// Name that clients of the contract expect of a connector.
pub const CONNECTOR_NAME: &str = "ghidra-vice-connector";

/// Version of the contract's own connector whose behaviour this is.
pub const CONNECTOR_VERSION: &str = "0.100.0";

/// Name of this implementation, beside [`CONNECTOR_NAME`].
pub const IMPLEMENTATION: &str = "retroscope";

/// The machine.
pub const MACHINE: &str = "c64";

/// Version of VICE's binary monitor protocol that is spoken.
pub const BINARY_MONITOR_API: u32 = 2;

/// Path of the object that stands for the machine; the argument `process` of every method names it.
pub const ROOT_OBJECT: &str = "C64";

/// What a connector of this contract can do, all of it.
pub const CAPABILITIES: [&str; 19] = [
    "status",
    "registers.read",
    "registers.write",
    "banks.list",
    "memory.read.bank",
    "memory.write.bank",
    "checkpoints.list",
    "checkpoints.create",
    "checkpoints.delete",
    "checkpoints.toggle",
    "execution.step",
    "execution.next",
    "execution.finish",
    "execution.resume",
    "execution.interrupt",
    "execution.wait_for_stop",
    "machine.reset",
    "display.capture",
    "trace.sync",
];

/// Numbers that a connector says of itself, and must at least say.
pub const LIMITS: [(&str, u64); 6] = [
    ("response_body_bytes", limits::MAX_VICE_RESPONSE_BYTES as u64),
    ("event_history", limits::MAX_VICE_EVENTS as u64),
    ("banks", limits::MAX_VICE_BANKS as u64),
    ("checkpoints", limits::MAX_VICE_CHECKPOINTS as u64),
    ("memory_read_bytes", limits::MAX_VICE_TRANSFER_BYTES as u64),
    ("memory_write_bytes", limits::MAX_VICE_TRANSFER_BYTES as u64),
];

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterType {
    /// An object by its path: `{"object_path": "C64"}`.
    Object,
    /// An integer of 64 bits.
    Long,
    /// `true` or `false`.
    Bool,
    /// A text.
    String,
    /// A list of texts.
    StringArray,
    /// A list of integers.
    LongArray,
    /// Bytes: `{"encoding": "hex", "data": "…"}`.
    ByteArray,
}

impl ParameterType {
    /// Name of the type as discovery gives it. That of an object is the object's schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Object => ROOT_OBJECT,
            Self::Long => "LONG",
            Self::Bool => "BOOL",
            Self::String => "STRING",
            Self::StringArray => "STRING_ARR",
            Self::LongArray => "LONG_ARR",
            Self::ByteArray => "BYTE_ARR",
        }
    }
}

/// Value of a parameter that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// There is none: the parameter is required.
    Required,
    /// An integer.
    Long(i64),
    /// A truth value.
    Bool(bool),
    /// A text.
    String(&'static str),
}

/// One parameter of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub parameter_type: ParameterType,
    /// What holds when it is not given.
    pub default: DefaultValue,
}

impl Parameter {
    /// Whether it must be given.
    pub const fn required(&self) -> bool {
        matches!(self.default, DefaultValue::Required)
    }
}

/// One method. All return a text: the envelope in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name without [`NAMESPACE`].
    pub name: &'static str,
    /// Its parameters, [`PROCESS`] first.
    pub parameters: &'static [Parameter],
}

impl Method {
    /// Its name as it is called.
    pub fn full_name(&self) -> String {
        format!("{NAMESPACE}{}", self.name)
    }

    /// The parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&'static Parameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// Type of what every method returns.
pub const RETURN_TYPE: &str = ParameterType::String.name();

/// The method of this name, with or without [`NAMESPACE`] before it.
pub fn method(name: &str) -> Option<&'static Method> {
    let bare = name.strip_prefix(NAMESPACE).unwrap_or(name);
    METHODS.iter().chain(EXTENSIONS).find(|method| method.name == bare)
}

const fn required(name: &'static str, parameter_type: ParameterType) -> Parameter {
    Parameter { name, parameter_type, default: DefaultValue::Required }
}

const fn long(name: &'static str, default: i64) -> Parameter {
    Parameter { name, parameter_type: ParameterType::Long, default: DefaultValue::Long(default) }
}

const fn flag(name: &'static str, default: bool) -> Parameter {
    Parameter { name, parameter_type: ParameterType::Bool, default: DefaultValue::Bool(default) }
}

const fn text(name: &'static str, default: &'static str) -> Parameter {
    Parameter { name, parameter_type: ParameterType::String, default: DefaultValue::String(default) }
}

const fn number(name: &'static str) -> Parameter {
    required(name, ParameterType::Long)
}

const fn method_of(name: &'static str, parameters: &'static [Parameter]) -> Method {
    Method { name, parameters }
}

/// The machine that a method is called on.
pub const PROCESS: Parameter = required("process", ParameterType::Object);

const TIMEOUT: Parameter = long("timeout_ms", limits::DEFAULT_VICE_TIMEOUT_MS.cast_signed());
const MEMSPACE: Parameter = long("memspace", 0);
const SIDE_EFFECTS: Parameter = flag("side_effects", false);

/// The methods that every connector of this contract has.
pub const METHODS: &[Method] = &[
    method_of("capabilities", &[PROCESS]),
    method_of("status", &[PROCESS]),
    method_of("get_registers", &[PROCESS, required("names", ParameterType::StringArray), MEMSPACE, TIMEOUT]),
    method_of(
        "set_registers",
        &[
            PROCESS,
            required("names", ParameterType::StringArray),
            required("values", ParameterType::LongArray),
            MEMSPACE,
            TIMEOUT,
        ],
    ),
    method_of("list_banks", &[PROCESS, TIMEOUT]),
    method_of(
        "read_memory",
        &[
            PROCESS,
            number("bank_id"),
            number("start"),
            number("end"),
            SIDE_EFFECTS,
            long("max_bytes", limits::DEFAULT_VICE_READ_BYTES as i64),
            MEMSPACE,
            TIMEOUT,
        ],
    ),
    method_of(
        "write_memory",
        &[
            PROCESS,
            number("bank_id"),
            number("start"),
            required("data", ParameterType::ByteArray),
            SIDE_EFFECTS,
            MEMSPACE,
            TIMEOUT,
        ],
    ),
    method_of("list_checkpoints", &[PROCESS, TIMEOUT]),
    method_of(
        "set_checkpoint",
        &[
            PROCESS,
            number("start"),
            number("end"),
            flag("stop_on_hit", true),
            flag("enabled", true),
            long("operations", 4),
            flag("temporary", false),
            MEMSPACE,
            TIMEOUT,
        ],
    ),
    method_of("delete_checkpoint", &[PROCESS, number("number"), TIMEOUT]),
    method_of("toggle_checkpoint", &[PROCESS, number("number"), required("enabled", ParameterType::Bool), TIMEOUT]),
    method_of("step", &[PROCESS, long("count", 1), TIMEOUT]),
    method_of("next", &[PROCESS, long("count", 1), TIMEOUT]),
    method_of("finish", &[PROCESS, TIMEOUT]),
    method_of("resume", &[PROCESS, TIMEOUT]),
    method_of("interrupt", &[PROCESS, TIMEOUT]),
    method_of("wait_for_stop", &[PROCESS, number("after_sequence"), number("timeout_ms")]),
    method_of("reset", &[PROCESS, text("kind", "soft"), TIMEOUT]),
    method_of("capture_display", &[PROCESS, flag("use_vic", true), TIMEOUT]),
];

/// Methods of this implementation beyond the contract, which allows more.
pub const EXTENSIONS: &[Method] = &[
    method_of("set_condition", &[PROCESS, number("number"), required("expression", ParameterType::String), TIMEOUT]),
    method_of("feed_keyboard", &[PROCESS, required("text", ParameterType::ByteArray), TIMEOUT]),
    method_of(
        "save_snapshot",
        &[
            PROCESS,
            required("path", ParameterType::String),
            flag("save_roms", false),
            flag("save_disks", false),
            TIMEOUT,
        ],
    ),
    method_of("load_snapshot", &[PROCESS, required("path", ParameterType::String), TIMEOUT]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_method_stands_once_and_takes_the_process_first() {
        let all: Vec<&Method> = METHODS.iter().chain(EXTENSIONS).collect();
        // 19 of the contract and 4 of ours.
        assert_eq!(all.len(), 23);
        assert_eq!(all.iter().map(|method| method.name).collect::<BTreeSet<_>>().len(), 23);
        for method in all {
            assert_eq!(method.parameters.first(), Some(&PROCESS), "{}", method.name);
            let names: BTreeSet<&str> = method.parameters.iter().map(|parameter| parameter.name).collect();
            assert_eq!(names.len(), method.parameters.len(), "{}", method.name);
        }
    }

    #[test]
    fn a_method_is_found_by_either_name() {
        let found = method("c64_vice_v1_read_memory").unwrap();
        assert_eq!(method("read_memory"), Some(found));
        assert_eq!(found.full_name(), "c64_vice_v1_read_memory");
        assert_eq!(found.parameter("max_bytes").unwrap().default, DefaultValue::Long(4096));
        assert!(found.parameter("bank_id").unwrap().required());
        assert_eq!(method("c64_vice_v1_fly"), None);
    }

    #[test]
    fn capabilities_stand_once() {
        assert_eq!(CAPABILITIES.iter().collect::<BTreeSet<_>>().len(), CAPABILITIES.len());
    }
}
