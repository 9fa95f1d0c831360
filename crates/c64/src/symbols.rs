//! The symbol profile of the platform: names of registers, KERNAL entries and system variables, values of register bits, and
//! blocks of memory. The tables below are the source; [`Profile::new`] makes the profile of them, the same one every time.

/// The whole profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub id: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it is.
    pub description: String,
    /// Names of addresses.
    pub symbols: Vec<Symbol>,
    /// Names of values.
    pub equates: Vec<Equate>,
    /// Blocks of memory.
    pub memory_blocks: Vec<MemoryBlock>,
}

/// A name of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The address.
    pub address: u16,
    /// The name.
    pub name: String,
    /// What it belongs to, `C64::VIC`.
    pub namespace: &'static str,
    /// Whether it is called.
    pub entry_point: bool,
    /// Where it is documented.
    pub source: &'static str,
}

/// A name of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equate {
    /// The name, `C64_VIC_…`.
    pub name: String,
    /// The value, one byte.
    pub value: u8,
    /// What it does.
    pub description: String,
    /// Where it is documented.
    pub source: &'static str,
}

/// A block of memory that a program may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlock {
    /// Its name.
    pub name: &'static str,
    /// Its first address.
    pub start: u16,
    /// Its bytes.
    pub length: u32,
    /// Whether it lies over other memory.
    pub overlay: bool,
    /// Whether it can be written.
    pub write: bool,
    /// Whether code runs there.
    pub execute: bool,
    /// What it is.
    pub comment: &'static str,
}

/// What the VIC-II's registers are documented in.
const GUIDE_VIC: &str = "Commodore 64 Programmer's Reference Guide (1982), chapter 3 and appendix G";
/// What the SID's registers are documented in.
const SHEET_SID: &str = "MOS 6581 SID data sheet (1982), table 1";
/// What the CIAs' registers are documented in.
const SHEET_CIA: &str = "MOS 6526 CIA data sheet (1981), register map";
/// What the KERNAL's entries are documented in.
const GUIDE_KERNAL: &str = "Commodore 64 Programmer's Reference Guide (1982), chapter 5, the KERNAL";
/// What the vectors of the processor are documented in.
const SHEET_CPU: &str = "MOS 6510 data sheet (1982), vectors and I/O port";
/// What the system variables are documented in.
const GUIDE_MEMORY: &str = "Commodore 64 Programmer's Reference Guide (1982), chapter 5, memory map";
/// What the decoding of addresses is documented in.
const SERVICE: &str = "Commodore 64 Service Manual (1985), memory map";

/// Names from one address on.
struct Run {
    namespace: &'static str,
    entry_point: bool,
    source: &'static str,
    start: u16,
    /// From one name to the next.
    step: u16,
    names: &'static [&'static str],
}

const fn labels(namespace: &'static str, source: &'static str, start: u16, names: &'static [&'static str]) -> Run {
    Run { namespace, entry_point: false, source, start, step: 1, names }
}

/// The registers of a CIA: both have the same.
const CIA: &[&str] = &[
    "DATA_PORT_A",
    "DATA_PORT_B",
    "DATA_DIRECTION_A",
    "DATA_DIRECTION_B",
    "TIMER_A_LO",
    "TIMER_A_HI",
    "TIMER_B_LO",
    "TIMER_B_HI",
    "TOD_TENTHS",
    "TOD_SECONDS",
    "TOD_MINUTES",
    "TOD_HOURS",
    "SERIAL_DATA",
    "INTERRUPT_CONTROL",
    "CONTROL_A",
    "CONTROL_B",
];

const RUNS: &[Run] = &[
    labels("C64::CPU", SHEET_CPU, 0x0000, &["PROCESSOR_PORT_DIRECTION", "PROCESSOR_PORT"]),
    labels(
        "C64::VIC",
        GUIDE_VIC,
        0xd000,
        &[
            "SPRITE0_X",
            "SPRITE0_Y",
            "SPRITE1_X",
            "SPRITE1_Y",
            "SPRITE2_X",
            "SPRITE2_Y",
            "SPRITE3_X",
            "SPRITE3_Y",
            "SPRITE4_X",
            "SPRITE4_Y",
            "SPRITE5_X",
            "SPRITE5_Y",
            "SPRITE6_X",
            "SPRITE6_Y",
            "SPRITE7_X",
            "SPRITE7_Y",
            "SPRITE_X_MSB",
            "CONTROL_1",
            "RASTER",
            "LIGHT_PEN_X",
            "LIGHT_PEN_Y",
            "SPRITE_ENABLE",
            "CONTROL_2",
            "SPRITE_Y_EXPAND",
            "MEMORY_POINTERS",
            "INTERRUPT_STATUS",
            "INTERRUPT_ENABLE",
            "SPRITE_PRIORITY",
            "SPRITE_MULTICOLOR",
            "SPRITE_X_EXPAND",
            "SPRITE_SPRITE_COLLISION",
            "SPRITE_BACKGROUND_COLLISION",
            "BORDER_COLOR",
            "BACKGROUND_COLOR_0",
            "BACKGROUND_COLOR_1",
            "BACKGROUND_COLOR_2",
            "BACKGROUND_COLOR_3",
            "SPRITE_MULTICOLOR_0",
            "SPRITE_MULTICOLOR_1",
            "SPRITE0_COLOR",
            "SPRITE1_COLOR",
            "SPRITE2_COLOR",
            "SPRITE3_COLOR",
            "SPRITE4_COLOR",
            "SPRITE5_COLOR",
            "SPRITE6_COLOR",
            "SPRITE7_COLOR",
        ],
    ),
    labels("C64::VIC", GUIDE_VIC, 0xd800, &["COLOR_RAM"]),
    labels(
        "C64::SID",
        SHEET_SID,
        0xd400,
        &[
            "VOICE1_FREQ_LO",
            "VOICE1_FREQ_HI",
            "VOICE1_PULSE_LO",
            "VOICE1_PULSE_HI",
            "VOICE1_CONTROL",
            "VOICE1_ATTACK_DECAY",
            "VOICE1_SUSTAIN_RELEASE",
            "VOICE2_FREQ_LO",
            "VOICE2_FREQ_HI",
            "VOICE2_PULSE_LO",
            "VOICE2_PULSE_HI",
            "VOICE2_CONTROL",
            "VOICE2_ATTACK_DECAY",
            "VOICE2_SUSTAIN_RELEASE",
            "VOICE3_FREQ_LO",
            "VOICE3_FREQ_HI",
            "VOICE3_PULSE_LO",
            "VOICE3_PULSE_HI",
            "VOICE3_CONTROL",
            "VOICE3_ATTACK_DECAY",
            "VOICE3_SUSTAIN_RELEASE",
            "FILTER_CUTOFF_LO",
            "FILTER_CUTOFF_HI",
            "FILTER_RESONANCE_ROUTING",
            "FILTER_MODE_VOLUME",
            "PADDLE_X",
            "PADDLE_Y",
            "OSCILLATOR3_RANDOM",
            "ENVELOPE3",
        ],
    ),
    labels("C64::CIA1", SHEET_CIA, 0xdc00, CIA),
    labels("C64::CIA2", SHEET_CIA, 0xdd00, CIA),
    Run {
        namespace: "C64::KERNAL",
        entry_point: true,
        source: GUIDE_KERNAL,
        start: 0xff81,
        // Each entry is a JMP.
        step: 3,
        names: &[
            "CINT", "IOINIT", "RAMTAS", "RESTOR", "VECTOR", "SETMSG", "SECOND", "TKSA", "MEMTOP", "MEMBOT", "SCNKEY",
            "SETTMO", "ACPTR", "CIOUT", "UNTLK", "UNLSN", "LISTEN", "TALK", "READST", "SETLFS", "SETNAM", "OPEN",
            "CLOSE", "CHKIN", "CHKOUT", "CLRCHN", "CHRIN", "CHROUT", "LOAD", "SAVE", "SETTIM", "RDTIM", "STOP",
            "GETIN", "CLALL", "UDTIM", "SCREEN", "PLOT", "IOBASE",
        ],
    },
    Run {
        namespace: "C64::KERNAL",
        entry_point: false,
        source: SHEET_CPU,
        start: 0xfffa,
        // Each vector is an address.
        step: 2,
        names: &["NMI_VECTOR", "RESET_VECTOR", "IRQ_VECTOR"],
    },
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x0090, &["IO_STATUS", "STOP_KEY_FLAG"]),
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x0099, &["DEFAULT_INPUT_DEVICE", "DEFAULT_OUTPUT_DEVICE"]),
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x00c6, &["KEYBOARD_BUFFER_LENGTH"]),
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x00d3, &["CURSOR_COLUMN"]),
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x00d6, &["CURSOR_ROW"]),
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x0286, &["TEXT_COLOR"]),
    labels("C64::WORKSPACE", GUIDE_MEMORY, 0x0288, &["SCREEN_MEMORY_PAGE"]),
    Run {
        namespace: "C64::WORKSPACE",
        entry_point: false,
        source: GUIDE_MEMORY,
        start: 0x0314,
        step: 2,
        names: &["IRQ_RAM_VECTOR", "BRK_RAM_VECTOR", "NMI_RAM_VECTOR"],
    },
];

/// Values of one register's bits: name without the prefix, value, what it does.
struct Bits {
    prefix: &'static str,
    source: &'static str,
    values: &'static [(&'static str, u8, &'static str)],
}

const BITS: &[Bits] = &[
    Bits {
        prefix: "C64_VIC_",
        source: GUIDE_VIC,
        values: &[
            ("CONTROL1_RASTER_MSB", 0x80, "bit 8 of the raster line"),
            ("CONTROL1_EXTENDED_COLOR_MODE", 0x40, "extended colour text"),
            ("CONTROL1_BITMAP_MODE", 0x20, "bitmap instead of characters"),
            ("CONTROL1_DISPLAY_ENABLE", 0x10, "shows the screen; clear: border only"),
            ("CONTROL1_ROW_SELECT", 0x08, "25 rows; clear: 24"),
            ("CONTROL1_VERTICAL_SCROLL_MASK", 0x07, "pixels the screen is moved down"),
            ("CONTROL2_MULTICOLOR_MODE", 0x10, "two bits a pixel in text and bitmaps"),
            ("CONTROL2_COLUMN_SELECT", 0x08, "40 columns; clear: 38"),
            ("CONTROL2_HORIZONTAL_SCROLL_MASK", 0x07, "pixels the screen is moved right"),
            ("MEMORY_SCREEN_MASK", 0xf0, "address of screen memory, in steps of 1 KiB"),
            ("MEMORY_CHARACTER_MASK", 0x0e, "address of characters (steps of 2 KiB) or of the bitmap (bit 3)"),
            ("IRQ_STATUS_ANY", 0x80, "an enabled interrupt has occurred"),
            ("IRQ_STATUS_LIGHT_PEN", 0x08, "the light pen was triggered"),
            ("IRQ_ENABLE_LIGHT_PEN", 0x08, "interrupt at the light pen"),
            ("IRQ_STATUS_SPRITE_SPRITE", 0x04, "two sprites met"),
            ("IRQ_ENABLE_SPRITE_SPRITE", 0x04, "interrupt when two sprites meet"),
            ("IRQ_STATUS_SPRITE_BACKGROUND", 0x02, "a sprite met the foreground"),
            ("IRQ_ENABLE_SPRITE_BACKGROUND", 0x02, "interrupt when a sprite meets the foreground"),
            ("IRQ_STATUS_RASTER", 0x01, "the raster line was reached"),
            ("IRQ_ENABLE_RASTER", 0x01, "interrupt at the raster line"),
        ],
    },
    Bits {
        prefix: "C64_SID_",
        source: SHEET_SID,
        values: &[
            ("CONTROL_GATE", 0x01, "starts attack when set, release when cleared"),
            ("CONTROL_SYNC", 0x02, "restarts the oscillator with that of the voice before"),
            ("CONTROL_RING_MOD", 0x04, "replaces the triangle by ring modulation"),
            ("CONTROL_TEST", 0x08, "holds the oscillator still"),
            ("CONTROL_TRIANGLE", 0x10, "triangle"),
            ("CONTROL_SAWTOOTH", 0x20, "sawtooth"),
            ("CONTROL_PULSE", 0x40, "pulse"),
            ("CONTROL_NOISE", 0x80, "noise"),
            ("FILTER_VOICE1", 0x01, "sends voice 1 through the filter"),
            ("FILTER_VOICE2", 0x02, "sends voice 2 through the filter"),
            ("FILTER_VOICE3", 0x04, "sends voice 3 through the filter"),
            ("FILTER_EXTERNAL", 0x08, "sends the external input through the filter"),
            ("FILTER_RESONANCE_MASK", 0xf0, "resonance of the filter"),
            ("MODE_VOLUME_MASK", 0x0f, "volume of all voices"),
            ("MODE_LOW_PASS", 0x10, "lets low frequencies pass"),
            ("MODE_BAND_PASS", 0x20, "lets a band of frequencies pass"),
            ("MODE_HIGH_PASS", 0x40, "lets high frequencies pass"),
            ("MODE_VOICE3_OFF", 0x80, "silences voice 3 unless it is filtered"),
        ],
    },
    Bits {
        prefix: "C64_CIA_",
        source: SHEET_CIA,
        values: &[
            ("ICR_TIMER_A", 0x01, "timer A ran out"),
            ("ICR_TIMER_B", 0x02, "timer B ran out"),
            ("ICR_ALARM", 0x04, "the clock reached the alarm"),
            ("ICR_SERIAL", 0x08, "the serial register is full or empty"),
            ("ICR_FLAG", 0x10, "the FLAG line fell"),
            ("ICR_SET_CLEAR", 0x80, "read: an interrupt occurred; write: set the mask bits, not clear them"),
            ("CRA_START", 0x01, "runs timer A"),
            ("CRA_PBON", 0x02, "timer A drives PB6"),
            ("CRA_OUTMODE", 0x04, "PB6 toggles; clear: pulses"),
            ("CRA_RUNMODE", 0x08, "timer A stops at zero; clear: starts again"),
            ("CRA_LOAD", 0x10, "loads timer A from its latch"),
            ("CRA_INMODE", 0x20, "timer A counts CNT; clear: clock cycles"),
            ("CRA_SPMODE", 0x40, "the serial register sends; clear: receives"),
            ("CRA_TODIN", 0x80, "the clock runs at 50 Hz; clear: 60 Hz"),
            ("CRB_START", 0x01, "runs timer B"),
            ("CRB_PBON", 0x02, "timer B drives PB7"),
            ("CRB_OUTMODE", 0x04, "PB7 toggles; clear: pulses"),
            ("CRB_RUNMODE", 0x08, "timer B stops at zero; clear: starts again"),
            ("CRB_LOAD", 0x10, "loads timer B from its latch"),
            ("CRB_INMODE0", 0x20, "what timer B counts, low bit: clock cycles, CNT"),
            ("CRB_INMODE1", 0x40, "what timer B counts, high bit: timer A"),
            ("CRB_ALARM", 0x80, "writes to the clock set the alarm"),
        ],
    },
];

const MEMORY: &[MemoryBlock] = &[
    MemoryBlock {
        name: "RAM",
        start: 0x0000,
        length: 0x1_0000,
        overlay: false,
        write: true,
        execute: true,
        comment: "All 64 KiB of RAM",
    },
    MemoryBlock {
        name: "BASIC_ROM",
        start: 0xa000,
        length: 0x2000,
        overlay: true,
        write: false,
        execute: true,
        comment: "BASIC interpreter",
    },
    MemoryBlock {
        name: "KERNAL_ROM",
        start: 0xe000,
        length: 0x2000,
        overlay: true,
        write: false,
        execute: true,
        comment: "Operating system",
    },
    MemoryBlock {
        name: "IO",
        start: 0xd000,
        length: 0x1000,
        overlay: true,
        write: true,
        execute: false,
        comment: "VIC-II, SID, colour RAM, CIAs, expansion",
    },
    MemoryBlock {
        name: "COLOR_RAM",
        start: 0xd800,
        length: 0x0400,
        overlay: true,
        write: true,
        execute: false,
        comment: "Colours of the screen's cells, four bits each",
    },
];

/// Where the blocks of memory are documented.
pub const MEMORY_SOURCE: &str = SERVICE;

/// Registers with one bit for each sprite: the word in the names, and what the bit does.
const SPRITE_BITS: &[(&str, &str)] = &[
    ("X_MSB", "bit 8 of the horizontal position of sprite"),
    ("ENABLE", "shows sprite"),
    ("Y_EXPAND", "doubles the height of sprite"),
    ("PRIORITY", "puts the foreground in front of sprite"),
    ("MULTICOLOR", "gives two bits a pixel to sprite"),
    ("X_EXPAND", "doubles the width of sprite"),
];

impl Profile {
    /// Makes it of the tables.
    #[allow(clippy::new_without_default, reason = "there is one profile, and nothing to choose")]
    pub fn new() -> Self {
        let symbols = RUNS.iter().flat_map(|run| {
            run.names.iter().zip((run.start..=u16::MAX).step_by(usize::from(run.step))).map(|(name, address)| Symbol {
                address,
                name: (*name).to_owned(),
                namespace: run.namespace,
                entry_point: run.entry_point,
                source: run.source,
            })
        });
        let equates = BITS.iter().flat_map(|bits| {
            let own = bits.values.iter().map(|(name, value, description)| Equate {
                name: format!("{}{name}", bits.prefix),
                value: *value,
                description: (*description).to_owned(),
                source: bits.source,
            });
            // The bits of the sprites stand between those of the VIC-II and those of the SID.
            let sprites = SPRITE_BITS.iter().filter(|_| bits.prefix == "C64_VIC_").flat_map(|(word, what)| {
                (0..8).map(move |sprite| Equate {
                    name: format!("C64_VIC_{word}_SPRITE{sprite}"),
                    value: 1 << sprite,
                    description: format!("{what} {sprite}"),
                    source: GUIDE_VIC,
                })
            });
            own.chain(sprites).collect::<Vec<_>>()
        });
        Self {
            id: "c64",
            version: "1.1.0",
            description: format!(
                "Commodore 64: registers, KERNAL entries, system variables, values of register bits, and blocks of memory. \
                 Sources: {GUIDE_VIC}; {GUIDE_KERNAL}; {GUIDE_MEMORY}; {SHEET_SID}; {SHEET_CIA}; {SHEET_CPU}; {SERVICE}."
            ),
            symbols: symbols.collect(),
            equates: equates.collect(),
            memory_blocks: MEMORY.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn address(profile: &Profile, namespace: &str, name: &str) -> Option<u16> {
        let mut symbols = profile.symbols.iter();
        symbols.find(|symbol| symbol.namespace == namespace && symbol.name == name).map(|symbol| symbol.address)
    }

    #[test]
    fn every_register_and_entry_is_there_once() {
        let profile = Profile::new();
        let all = |namespace: &str| -> Vec<u16> {
            let symbols = profile.symbols.iter();
            symbols.filter(|symbol| symbol.namespace == namespace).map(|symbol| symbol.address).collect()
        };
        // 47 registers of the VIC-II and colour RAM, 29 of the SID, 16 of each CIA.
        assert_eq!(all("C64::VIC"), (0xd000..=0xd02e).chain([0xd800]).collect::<Vec<u16>>());
        assert_eq!(all("C64::SID"), (0xd400..=0xd41c).collect::<Vec<u16>>());
        assert_eq!(all("C64::CIA1"), (0xdc00..=0xdc0f).collect::<Vec<u16>>());
        assert_eq!(all("C64::CIA2"), (0xdd00..=0xdd0f).collect::<Vec<u16>>());
        // 39 jumps of 3 bytes from $FF81 to $FFF3.
        let entries = profile.symbols.iter().filter(|symbol| symbol.entry_point).map(|symbol| symbol.address);
        assert_eq!(entries.collect::<Vec<u16>>(), (0..39).map(|at| 0xff81 + at * 3).collect::<Vec<u16>>());
        assert_eq!((profile.symbols.len(), profile.equates.len(), profile.memory_blocks.len()), (165, 108, 5));
        let names: HashSet<_> = profile.symbols.iter().map(|symbol| (symbol.namespace, &symbol.name)).collect();
        assert_eq!(names.len(), 165);
        assert_eq!(profile.equates.iter().map(|equate| &equate.name).collect::<HashSet<_>>().len(), 108);
    }

    #[test]
    fn the_memory_map_is_the_machines() {
        // Service manual: 64 KiB of RAM, and over it two ROMs of 8 KiB, 4 KiB of registers and 1 KiB of colours.
        let blocks = Profile::new().memory_blocks;
        let blocks: Vec<_> = blocks
            .iter()
            .map(|block| (block.name, block.start, block.length, block.overlay, block.write, block.execute))
            .collect();
        assert_eq!(
            blocks,
            [
                ("RAM", 0x0000, 65_536, false, true, true),
                ("BASIC_ROM", 0xa000, 8_192, true, false, true),
                ("KERNAL_ROM", 0xe000, 8_192, true, false, true),
                ("IO", 0xd000, 4_096, true, true, false),
                ("COLOR_RAM", 0xd800, 1_024, true, true, false),
            ]
        );
    }

    #[test]
    fn well_known_addresses_have_their_names() {
        // Addresses that every C64 program uses, from the Programmer's Reference Guide.
        let profile = Profile::new();
        for (namespace, name, expected) in [
            ("C64::KERNAL", "CINT", 0xff81),
            ("C64::KERNAL", "SETNAM", 0xffbd),
            ("C64::KERNAL", "CHROUT", 0xffd2),
            ("C64::KERNAL", "LOAD", 0xffd5),
            ("C64::KERNAL", "GETIN", 0xffe4),
            ("C64::KERNAL", "IOBASE", 0xfff3),
            ("C64::KERNAL", "RESET_VECTOR", 0xfffc),
            ("C64::VIC", "SPRITE_X_MSB", 0xd010),
            ("C64::VIC", "RASTER", 0xd012),
            ("C64::VIC", "MEMORY_POINTERS", 0xd018),
            ("C64::VIC", "BORDER_COLOR", 0xd020),
            ("C64::VIC", "SPRITE7_COLOR", 0xd02e),
            ("C64::SID", "VOICE2_CONTROL", 0xd40b),
            ("C64::SID", "FILTER_MODE_VOLUME", 0xd418),
            ("C64::CIA1", "INTERRUPT_CONTROL", 0xdc0d),
            ("C64::CIA2", "DATA_PORT_A", 0xdd00),
            ("C64::CPU", "PROCESSOR_PORT", 0x0001),
            ("C64::WORKSPACE", "KEYBOARD_BUFFER_LENGTH", 0x00c6),
            ("C64::WORKSPACE", "IRQ_RAM_VECTOR", 0x0314),
            ("C64::WORKSPACE", "NMI_RAM_VECTOR", 0x0318),
        ] {
            assert_eq!(address(&profile, namespace, name), Some(expected), "{namespace}::{name}");
        }
    }

    #[test]
    fn values_of_bits_are_what_the_registers_take() {
        let profile = Profile::new();
        // $D011 after power-on is $1B: display on, 25 rows, scrolled by 3.
        let value = |name: &str| profile.equates.iter().find(|equate| equate.name == name).map(|equate| equate.value);
        let display = value("C64_VIC_CONTROL1_DISPLAY_ENABLE").unwrap();
        let rows = value("C64_VIC_CONTROL1_ROW_SELECT").unwrap();
        assert_eq!(display | rows | 3 & value("C64_VIC_CONTROL1_VERTICAL_SCROLL_MASK").unwrap(), 0x1b);
        assert_eq!(value("C64_VIC_ENABLE_SPRITE7"), Some(0x80));
        // A triangle that is gated is $11 in a voice's control register.
        assert_eq!(value("C64_SID_CONTROL_TRIANGLE").unwrap() | value("C64_SID_CONTROL_GATE").unwrap(), 0x11);
        // $7F written to $DC0D clears all masks; $81 sets that of timer A.
        assert_eq!(value("C64_CIA_ICR_SET_CLEAR").unwrap() | value("C64_CIA_ICR_TIMER_A").unwrap(), 0x81);
    }
}
