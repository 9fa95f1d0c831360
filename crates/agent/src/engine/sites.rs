//! The places where an INT3 of ours stands in the program's memory: the bytes under them, who wants them there, and the
//! scratch slots in which the instruction under an INT3 is executed while the INT3 stays.

use crate::platform::{Platform, PlatformError};
use base::{VirtAddr, limits};
use code::x86::{self, Bitness, Displaced, PcMeaning, SLOT_BYTES};
use std::collections::BTreeMap;

/// The one-byte breakpoint instruction.
pub(super) const INT3: u8 = 0xcc;
/// Bytes of a slot, as an address difference.
const SLOT: u64 = SLOT_BYTES as u64;

/// Who wants an INT3 at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A breakpoint of a client.
    User,
    /// The program's entry point, at a launch.
    Entry,
    /// The loader's notice of a changed module list.
    Loader,
    /// The end of a step over or out.
    Step,
}

/// One place.
#[derive(Debug)]
struct Site {
    /// The program's own byte.
    original: u8,
    /// Whether the INT3 stands in memory now.
    planted: bool,
    owners: Vec<Owner>,
    /// Where the instruction may be executed instead.
    slot: Option<Slot>,
}

#[derive(Debug)]
struct Slot {
    at: u64,
    plan: Displaced,
    /// The bytes that it was planned from; empty once they have been seen to be still there.
    from: Vec<u8>,
}

/// Executable memory of ours in the program, cut into slots.
#[derive(Debug)]
struct Region {
    base: u64,
    free: Vec<u64>,
}

/// All places, by address.
#[derive(Debug, Default)]
pub(super) struct Sites {
    map: BTreeMap<u64, Site>,
    regions: Vec<Region>,
    /// Slot address to the address of its site.
    owners: BTreeMap<u64, u64>,
    /// The platform has no scratch memory.
    no_scratch: bool,
    /// Children that share the memory run: nothing may stand in it.
    suspended: bool,
}

/// Where a program counter inside scratch memory stands in the program's own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InSlot {
    /// Address of the instruction that the slot stands for.
    pub(super) site: VirtAddr,
    /// What the program counter means; `None` inside an instruction.
    pub(super) meaning: Option<PcMeaning>,
}

impl Sites {
    /// Everything is forgotten: the memory it described is gone.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// An INT3 of ours stands at `at` in memory.
    pub(super) fn is_planted(&self, at: VirtAddr) -> bool {
        self.map.get(&at.get()).is_some_and(|site| site.planted)
    }

    /// An INT3 of ours belongs at `at`, whether or not it is lifted at the moment.
    pub(super) fn is_site(&self, at: VirtAddr) -> bool {
        self.map.contains_key(&at.get())
    }

    /// `owner` wants an INT3 at `at`.
    pub(super) fn wanted_by(&self, at: VirtAddr, owner: Owner) -> bool {
        self.map.get(&at.get()).is_some_and(|site| site.owners.contains(&owner))
    }

    /// The program itself has an INT3 under ours.
    pub(super) fn own_int3(&self, at: VirtAddr) -> bool {
        self.map.get(&at.get()).is_some_and(|site| site.original == INT3)
    }

    /// The instruction at `at` begins with a prefix, as repeated ones do (Intel SDM volume 2, section 2.1.1); it spares
    /// the hot path a look at registers and memory.
    pub(super) fn may_repeat(&self, at: VirtAddr) -> bool {
        let prefixes = [0xf2, 0xf3, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0];
        self.map.get(&at.get()).is_none_or(|site| prefixes.contains(&site.original))
    }

    /// The slot in which the instruction at `at` may be executed.
    pub(super) fn slot(&self, at: VirtAddr) -> Option<VirtAddr> {
        let site = self.map.get(&at.get()).filter(|site| site.planted)?;
        site.slot.as_ref().map(|slot| VirtAddr::new(slot.at))
    }

    /// As [`Sites::slot`], for a thread that is about to execute it. Loaders tell of a library before they have moved its
    /// addresses to where it lies, so a slot is held against the code the first time, when no thread is in it yet.
    pub(super) fn slot_to_run<P: Platform>(
        &mut self,
        platform: &mut P,
        at: VirtAddr,
        bitness: Bitness,
    ) -> Option<VirtAddr> {
        let slot = self.map.get_mut(&at.get()).filter(|site| site.planted).and_then(|site| site.slot.as_mut())?;
        let from = std::mem::take(&mut slot.from);
        if !from.is_empty() {
            let mut now = vec![0; from.len()];
            let count = self.read(platform, at, &mut now).unwrap_or(0);
            if now.get(..count) != Some(from.as_slice()) {
                self.free_slot(at);
                self.make_slot(platform, at, bitness, false);
                self.map.get_mut(&at.get())?.slot.as_mut()?.from.clear();
            }
        }
        self.slot(at)
    }

    /// Says what a program counter in scratch memory means, `None` for one outside it.
    pub(super) fn locate(&self, pc: VirtAddr) -> Option<InSlot> {
        let (at, owner) = self.owners.range(..=pc.get()).next_back()?;
        let offset = pc.get() - at;
        let site = self.map.get(owner).filter(|_| offset < SLOT)?;
        let meaning = site.slot.as_ref().and_then(|slot| slot.plan.meaning(offset));
        Some(InSlot { site: VirtAddr::new(*owner), meaning })
    }

    /// Addresses and bytes that the program has where INT3s of ours stand.
    pub(super) fn originals(&self) -> Vec<(VirtAddr, Vec<u8>)> {
        let planted = self.map.iter().filter(|(_, site)| site.planted);
        planted.map(|(at, site)| (VirtAddr::new(*at), vec![site.original])).collect()
    }

    /// Puts the program's own bytes over ours in a copy of its memory.
    pub(super) fn overlay(&self, address: VirtAddr, bytes: &mut [u8]) {
        let start = address.get();
        let end = start.saturating_add(bytes.len() as u64);
        for (at, site) in self.map.range(start..end).filter(|(_, site)| site.planted) {
            // The program may have written over ours by itself.
            if let Some(byte) = bytes.get_mut((at - start) as usize).filter(|byte| **byte == INT3) {
                *byte = site.original;
            }
        }
    }

    /// Reads what the program has in its memory, as much as is readable.
    pub(super) fn read<P: Platform>(
        &self,
        platform: &P,
        address: VirtAddr,
        buffer: &mut [u8],
    ) -> Result<usize, PlatformError> {
        let count = platform.read_memory(address, buffer)?;
        if let Some(read) = buffer.get_mut(..count) {
            self.overlay(address, read);
        }
        Ok(count)
    }

    /// Sites in the bytes from `address` on, `before` bytes before them included.
    pub(super) fn within(&self, address: VirtAddr, length: u64, before: u64) -> Vec<VirtAddr> {
        let start = address.get().saturating_sub(before);
        let end = address.get().saturating_add(length);
        self.map.range(start..end).map(|(at, _)| VirtAddr::new(*at)).collect()
    }

    /// Plants an INT3 for `owner`, with a slot when `with_slot` and that is possible. Every thread is held.
    pub(super) fn plant<P: Platform>(
        &mut self,
        platform: &mut P,
        at: VirtAddr,
        owner: Owner,
        bitness: Bitness,
        with_slot: bool,
    ) -> Result<(), PlatformError> {
        if let Some(site) = self.map.get_mut(&at.get()) {
            if !site.owners.contains(&owner) {
                site.owners.push(owner);
            }
        } else {
            let mut byte = [0];
            if platform.read_memory(at, &mut byte)? != 1 {
                return Err(PlatformError::Unmapped { usable: 0 });
            }
            let planted = !self.suspended;
            if planted {
                platform.write_memory(at, &[INT3])?;
            }
            let [original] = byte;
            self.map.insert(at.get(), Site { original, planted, owners: vec![owner], slot: None });
        }
        if with_slot && self.map.get(&at.get()).is_some_and(|site| site.slot.is_none()) {
            self.make_slot(platform, at, bitness, owner == Owner::User);
        }
        Ok(())
    }

    /// Takes `owner` off the place, and the INT3 out when nobody is left. Every thread is held and none is in a slot.
    pub(super) fn release<P: Platform>(
        &mut self,
        platform: &mut P,
        at: VirtAddr,
        owner: Owner,
    ) -> Result<(), PlatformError> {
        let Some(site) = self.map.get_mut(&at.get()) else { return Ok(()) };
        site.owners.retain(|other| *other != owner);
        if !site.owners.is_empty() {
            return Ok(());
        }
        let (planted, original) = (site.planted, site.original);
        self.free_slot(at);
        self.map.remove(&at.get());
        // Memory that the program has unmapped needs no repair.
        match if planted { put_back(platform, at, original) } else { Ok(()) } {
            Err(PlatformError::Unmapped { .. }) => Ok(()),
            other => other,
        }
    }

    /// Puts the program's byte back for a moment. Every other thread is held.
    pub(super) fn lift<P: Platform>(&mut self, platform: &mut P, at: VirtAddr) -> Result<(), PlatformError> {
        let Some(site) = self.map.get_mut(&at.get()).filter(|site| site.planted) else { return Ok(()) };
        put_back(platform, at, site.original)?;
        site.planted = false;
        Ok(())
    }

    /// Puts a lifted INT3 back.
    pub(super) fn restore<P: Platform>(&mut self, platform: &mut P, at: VirtAddr) -> Result<(), PlatformError> {
        let suspended = self.suspended;
        let Some(site) = self.map.get_mut(&at.get()).filter(|site| !site.planted && !suspended) else { return Ok(()) };
        // The instruction itself may have changed the byte that it began with.
        let mut byte = [0];
        if platform.read_memory(at, &mut byte)? != 1 {
            return Ok(());
        }
        let [now] = byte;
        platform.write_memory(at, &[INT3])?;
        site.original = now;
        site.planted = true;
        Ok(())
    }

    /// Takes every INT3 out while a child shares the memory.
    pub(super) fn suspend<P: Platform>(&mut self, platform: &mut P) {
        self.suspended = true;
        let places: Vec<u64> = self.map.keys().copied().collect();
        for at in places {
            // A page that is gone holds no INT3 any more.
            drop(self.lift(platform, VirtAddr::new(at)));
        }
    }

    /// Puts them back.
    pub(super) fn unsuspend<P: Platform>(&mut self, platform: &mut P) {
        self.suspended = false;
        let places: Vec<u64> = self.map.keys().copied().collect();
        for at in places {
            drop(self.restore(platform, VirtAddr::new(at)));
        }
    }

    /// Children that share the memory run.
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// Takes out everything that is ours. Every thread is held and none is in a slot; with `keep_scratch` the scratch
    /// memory stays, because some thread could not be looked at.
    pub(super) fn remove_all<P: Platform>(&mut self, platform: &mut P, keep_scratch: bool) {
        let sites = std::mem::take(&mut self.map);
        for (at, site) in sites.into_iter().filter(|(_, site)| site.planted) {
            drop(put_back(platform, VirtAddr::new(at), site.original));
        }
        for region in std::mem::take(&mut self.regions) {
            if !keep_scratch {
                drop(platform.free_code(VirtAddr::new(region.base), limits::SCRATCH_REGION_BYTES));
            }
        }
        self.clear();
    }

    /// Writes what the program is to have in its memory; INT3s of ours stay. Gives the sites that lie in the bytes.
    pub(super) fn write<P: Platform>(
        &mut self,
        platform: &mut P,
        address: VirtAddr,
        bytes: &[u8],
    ) -> Result<Vec<VirtAddr>, PlatformError> {
        let inside = self.within(address, bytes.len() as u64, 0);
        let mut with_ours = bytes.to_vec();
        for at in inside.iter().filter(|at| self.is_planted(**at)) {
            let offset = at.offset_from(address).unwrap_or(0) as usize;
            if let Some(byte) = with_ours.get_mut(offset) {
                *byte = INT3;
            }
        }
        platform.write_memory(address, &with_ours)?;
        for at in &inside {
            let offset = at.offset_from(address).unwrap_or(0) as usize;
            if let (Some(site), Some(byte)) = (self.map.get_mut(&at.get()), bytes.get(offset)) {
                site.original = *byte;
            }
        }
        Ok(inside)
    }

    /// Makes the slots anew whose instruction lies in changed bytes. Every thread is held and none is in a slot.
    pub(super) fn replan<P: Platform>(&mut self, platform: &mut P, changed: &[VirtAddr], bitness: Bitness) {
        for at in changed {
            let user = self.wanted_by(*at, Owner::User);
            let had = self.map.get(&at.get()).is_some_and(|site| site.slot.is_some());
            if user || had {
                self.free_slot(*at);
                self.make_slot(platform, *at, bitness, user);
            }
        }
    }

    fn free_slot(&mut self, at: VirtAddr) {
        let Some(slot) = self.map.get_mut(&at.get()).and_then(|site| site.slot.take()) else { return };
        self.owners.remove(&slot.at);
        let region = self
            .regions
            .iter_mut()
            .find(|region| VirtAddr::new(slot.at).is_in(VirtAddr::new(region.base), limits::SCRATCH_REGION_BYTES));
        if let Some(region) = region {
            region.free.push(slot.at);
        }
    }

    /// Plans and writes a slot; without one the instruction is stepped in place, so that no failure here is an error.
    fn make_slot<P: Platform>(&mut self, platform: &mut P, at: VirtAddr, bitness: Bitness, may_allocate: bool) {
        let mut bytes = [0; x86::INSN_BYTES];
        let Ok(count) = self.read(platform, at, &mut bytes) else { return };
        let bytes = bytes.get(..count).unwrap_or_default();
        // What cannot be moved anywhere needs no scratch memory.
        if self.no_scratch || x86::plan(bytes, at.get(), at.get(), bitness).is_err() {
            return;
        }
        let Some(slot) = self.take_slot(platform, at, bitness, may_allocate) else { return };
        let planned = x86::plan(bytes, at.get(), slot, bitness).ok();
        let written = planned.filter(|plan| platform.write_memory(VirtAddr::new(slot), &plan.code).is_ok());
        match (written, self.map.get_mut(&at.get())) {
            (Some(plan), Some(site)) => {
                let length = x86::length(bytes, at.get(), bitness).unwrap_or_default();
                let from = bytes.get(..length).unwrap_or_default().to_vec();
                site.slot = Some(Slot { at: slot, plan, from });
                self.owners.insert(slot, at.get());
            }
            _ => {
                if let Some(region) = self.region_near(slot, bitness) {
                    region.free.push(slot);
                }
            }
        }
    }

    fn take_slot<P: Platform>(
        &mut self,
        platform: &mut P,
        at: VirtAddr,
        bitness: Bitness,
        may_allocate: bool,
    ) -> Option<u64> {
        if let Some(slot) = self.region_near(at.get(), bitness).and_then(|region| region.free.pop()) {
            return Some(slot);
        }
        if !may_allocate {
            return None;
        }
        match platform.allocate_code(at, limits::SCRATCH_REGION_BYTES) {
            Ok(base) => {
                let slots = limits::SCRATCH_REGION_BYTES / SLOT;
                let mut free: Vec<u64> = (0..slots).rev().map(|index| base.get() + index * SLOT).collect();
                let first = free.pop();
                self.regions.push(Region { base: base.get(), free });
                first
            }
            Err(PlatformError::Unsupported(_)) => {
                self.no_scratch = true;
                None
            }
            Err(_) => None,
        }
    }

    /// A region with a free slot whose code reaches the surroundings of `address`.
    fn region_near(&mut self, address: u64, bitness: Bitness) -> Option<&mut Region> {
        let reach =
            |region: &Region| bitness == Bitness::Bits32 || region.base.abs_diff(address) < limits::SCRATCH_REACH_BYTES;
        self.regions.iter_mut().find(|region| reach(region) && !region.free.is_empty())
    }
}

/// Writes the program's byte where ours stands, unless the program has written there itself.
fn put_back<P: Platform>(platform: &mut P, at: VirtAddr, original: u8) -> Result<(), PlatformError> {
    let mut byte = [0];
    match platform.read_memory(at, &mut byte)? {
        1 if byte == [INT3] => platform.write_memory(at, &[original]),
        _ => Ok(()),
    }
}
