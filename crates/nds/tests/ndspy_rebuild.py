"""Reads a rebuilt ROM with ndspy and prints its files; then takes a decoded image and our stream of it, and prints what ndspy
makes of both: the hash of our stream decoded, and its own stream's length. Writes that stream beside."""

import hashlib
import sys

import ndspy.codeCompression
import ndspy.rom


def names(folder, path, found):
    for index, name in enumerate(folder.files):
        found[folder.firstID + index] = path + name
    for name, below in folder.folders:
        names(below, path + name + "/", found)


def digest(data):
    return hashlib.sha256(data).hexdigest()


rom_path, image_path, stream_path, other_path = sys.argv[1:]
rom = ndspy.rom.NintendoDSRom.fromFile(rom_path)
found = {}
names(rom.filenames, "", found)
for number, data in enumerate(rom.files):
    print("file", number, len(data), digest(data), found.get(number, "-"))
image = open(image_path, "rb").read()
print("decoded", digest(ndspy.codeCompression.decompress(open(stream_path, "rb").read())))
stream = bytes(ndspy.codeCompression.compress(image, False))
open(other_path, "wb").write(stream)
print("length", len(stream))
