"""Prints what ndspy reads from a ROM, one fact to a line. The test beside this file prints the same from our model."""

import hashlib
import sys

import ndspy.rom


def fact(name, *values):
    print(name, *values)


def digest(data):
    return "%d %s" % (len(data), hashlib.sha256(data).hexdigest())


def names(folder, path, found):
    for index, name in enumerate(folder.files):
        found[folder.firstID + index] = path + name
    for name, below in folder.folders:
        names(below, path + name + "/", found)


sys.stdout.reconfigure(encoding="utf-8", newline="\n")
rom = ndspy.rom.NintendoDSRom.fromFile(sys.argv[1])
fact("title", rom.name.hex())
fact("code", rom.idCode.hex(), rom.developerCode.hex())
fact("unit", rom.unitCode, rom.encryptionSeedSelect, rom.deviceCapacity)
fact("flags", rom.pad01C, rom.region, rom.version, rom.autostart)
fact("arm9", rom.arm9EntryAddress, rom.arm9RamAddress, digest(rom.arm9))
fact("arm7", rom.arm7EntryAddress, rom.arm7RamAddress, digest(rom.arm7))
fact("card", rom.normalCardControlRegisterSettings, rom.secureCardControlRegisterSettings)
fact("secure", rom.secureAreaChecksum, rom.secureTransferDelay, rom.secureAreaDisable.hex())
fact("hooks", rom.arm9CodeSettingsPointerAddress, rom.arm7CodeSettingsPointerAddress)
fact("debug", rom.debugRomAddress)
fact("tables", digest(rom.arm9OverlayTable), digest(rom.arm7OverlayTable))

paths = {}
names(rom.filenames, "", paths)
for number, data in enumerate(rom.files):
    fact("file", number, digest(data), paths.get(number, "-"))

for word, overlays in (("arm9", rom.loadArm9Overlays()), ("arm7", rom.loadArm7Overlays())):
    for number, overlay in sorted(overlays.items()):
        ram = (overlay.ramAddress, overlay.ramSize, overlay.bssSize)
        initialisers = (overlay.staticInitStart, overlay.staticInitEnd)
        stored = (overlay.fileID, overlay.compressedSize, overlay.flags)
        fact("overlay", word, number, *ram, *initialisers, *stored, digest(overlay.data))

# ndspy guesses from the last bytes whether a program is compressed, and fails on homebrew whose last bytes look like a
# footer. Only programs with module parameters can be.
if b"\x21\x06\xc0\xde\xde\xc0\x06\x21" in rom.arm9:
    for section in rom.loadArm9().sections:
        word = "main" if section.implicit else "autoload"
        fact(word, section.ramAddress, section.bssSize, digest(section.data))
else:
    fact("main", rom.arm9RamAddress, 0, digest(rom.arm9))
