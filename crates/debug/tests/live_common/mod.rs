//! Emulators for the live tests: started, found ready, and proven to be gone.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use debug::emulator::{Emulator, Launch, find_launcher, headless, port_is_free};
use debug::gdb_remote::{Debugger, Mode, ModeRequest, Range, RangeSource, Resumed, Stop};

/// Long enough for a busy machine; only what hangs waits it out.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

pub fn in_ms(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

pub const ARM: ModeRequest = ModeRequest::Known(Mode::Arm);
pub const THUMB: ModeRequest = ModeRequest::Known(Mode::Thumb);

/// A port that nobody has now.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

pub fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A program as the tests need it of its header.
pub fn program(id: &str, start: u32, length: u32) -> Range {
    Range {
        id: id.to_owned(),
        label: id.to_owned(),
        start,
        end: start + length,
        source: RangeSource::Main,
        default_mode: None,
        symbol_modes: BTreeMap::new(),
    }
}

/// The stop, or a failure.
pub fn stopped(resumed: Resumed) -> Stop {
    match resumed {
        Resumed::Stopped(stop) => *stop,
        Resumed::Running => panic!("still running"),
    }
}

/// A launcher in Debian's place, or the reason for the test to fail.
pub fn launcher(name: &str) -> PathBuf {
    find_launcher(Path::new(name)).unwrap_or_else(|| panic!("{name} is not installed: cargo xtask install"))
}

/// A Nintendo DS ROM's header, as far as it says where the programs are (GBATEK, "DS Cartridge Header").
pub struct Header(Vec<u8>);

impl Header {
    pub fn of(rom: &Path) -> Self {
        Self(std::fs::read(rom).unwrap())
    }

    pub fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    pub fn bytes(&self, at: u32, length: u32) -> &[u8] {
        &self.0[at as usize..(at + length) as usize]
    }
}

/// DeSmuME with a ROM.
pub struct Rig {
    pub emulator: Emulator,
    pub arm9: SocketAddr,
    pub arm7: Option<SocketAddr>,
    pub header: Header,
    home: tempfile::TempDir,
}

impl Rig {
    pub fn start(rom: &Path) -> Self {
        Self::start_at(rom, free_port(), None)
    }

    pub fn start_at(rom: &Path, arm9_port: u16, arm7_port: Option<u16>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let launch = Launch {
            launcher: launcher("desmume-cli"),
            rom: rom.to_owned(),
            arm9_port,
            arm7_port,
            home: home.path().to_owned(),
            environment: headless(),
        };
        let emulator = launch.start().unwrap();
        Self { emulator, arm9: local(arm9_port), arm7: arm7_port.map(local), header: Header::of(rom), home }
    }

    /// The ARM9, once its program is loaded.
    pub fn debugger(&mut self) -> Debugger {
        let range = program("arm9-main", self.header.word(0x28), self.header.word(0x2C));
        let entry = self.header.word(0x24);
        let emulator = &mut self.emulator;
        Debugger::when_ready(self.arm9, range, entry, soon(), || emulator.exit().is_none()).unwrap()
    }

    /// The ARM7, likewise.
    pub fn debugger7(&mut self) -> Debugger {
        let range = program("arm7-main", self.header.word(0x38), self.header.word(0x3C));
        let entry = self.header.word(0x34);
        let emulator = &mut self.emulator;
        Debugger::when_ready(self.arm7.unwrap(), range, entry, soon(), || emulator.exit().is_none()).unwrap()
    }

    /// Ends it and proves that nothing is left.
    pub fn end(mut self) {
        let pid = self.emulator.pid();
        self.emulator.stop();
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the process is still there");
        for address in std::iter::once(self.arm9).chain(self.arm7) {
            assert!(port_is_free(address.port()), "port {} is still taken", address.port());
        }
        self.home.close().unwrap();
    }
}

/// The fixture with the two overlays.
pub fn overlay_rom() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nds-overlay-rom/ndslab-test.nds")
}
