//! Which of several overlays is loaded: the live bytes beside every candidate's decoded image.

use base::limits;
use std::ops::Range;

/// What comparing the live bytes with a candidate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// All compared bytes are the candidate's, and no other candidate's.
    Match,
    /// Some are not.
    Mismatch,
    /// All compared bytes are the candidate's and another's too, or none could be compared.
    Indistinguishable,
}

impl Residency {
    /// Its word in answers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Mismatch => "mismatch",
            Self::Indistinguishable => "indistinguishable",
        }
    }
}

/// A candidate: its image and where that is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// First address.
    pub start: u32,
    /// The initialised bytes; `None` where they cannot be had.
    pub bytes: Option<&'a [u8]>,
}

/// The addresses that are worth comparing for a stop at `pc`: a small image whole; of a large one a window around `pc`, samples
/// spread over it, and some places where it differs from the others.
pub fn places(pc: u32, images: &[Image<'_>]) -> Vec<Range<u32>> {
    let half = limits::RESIDENCY_WINDOW_BYTES / 2;
    let mut places = Vec::new();
    for image in images {
        let length = image.bytes.map_or(0, |bytes| u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let Some(end) = image.start.checked_add(length) else { continue };
        let clip = |from: u32, to: u32| from.max(image.start)..to.min(end);
        if length <= limits::RESIDENCY_WHOLE_BYTES {
            places.push(image.start..end);
            continue;
        }
        places.push(clip(pc.saturating_sub(half), pc.saturating_add(half)));
        for sample in 0..limits::RESIDENCY_SAMPLES {
            let room = u64::from(length.saturating_sub(limits::RESIDENCY_SAMPLE_BYTES));
            let at = room * u64::from(sample) / u64::from(limits::RESIDENCY_SAMPLES - 1);
            let from = image.start.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
            places.push(clip(from, from.saturating_add(limits::RESIDENCY_SAMPLE_BYTES)));
        }
    }
    for (image, next) in images.iter().zip(images.iter().skip(1)) {
        places.extend(differences(image, next));
    }
    places.retain(|place| place.start < place.end);
    places.sort_by_key(|place| (place.start, place.end));
    let mut joined: Vec<Range<u32>> = Vec::new();
    for place in places {
        match joined.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => joined.push(place),
        }
    }
    joined
}

/// Some of the places where two images that share addresses differ, spread evenly over all of them.
fn differences(one: &Image<'_>, other: &Image<'_>) -> Vec<Range<u32>> {
    let from = one.start.max(other.start);
    let (Some(own), Some(its)) = (tail(one, from), tail(other, from)) else { return Vec::new() };
    let block = limits::RESIDENCY_SAMPLE_BYTES as usize;
    let blocks = own.chunks_exact(block).zip(its.chunks_exact(block)).enumerate();
    let differing: Vec<usize> = blocks.filter(|(_, (own, its))| own != its).map(|(at, _)| at).collect();
    let step = differing.len().div_ceil(limits::RESIDENCY_SAMPLES as usize).max(1);
    let place = |at: &usize| {
        let start = from.checked_add(u32::try_from(at * block).ok()?)?;
        Some(start..start.checked_add(limits::RESIDENCY_SAMPLE_BYTES)?)
    };
    differing.iter().step_by(step).filter_map(place).collect()
}

/// The bytes of an image from an address on.
fn tail<'a>(image: &Image<'a>, from: u32) -> Option<&'a [u8]> {
    image.bytes?.get(from.checked_sub(image.start)? as usize..)
}

/// What the live bytes say of each candidate. `read` are the places with their bytes. Code around `pc` is not written to while
/// it runs, so a candidate with other bytes there is not loaded; data elsewhere in an overlay may have been written to, so
/// samples decide only between candidates that agree around `pc`, or when `pc` is `None`: nothing is executed there.
pub fn compare(pc: Option<u32>, images: &[Image<'_>], read: &[(Range<u32>, Vec<u8>)]) -> Vec<Residency> {
    let half = limits::RESIDENCY_WINDOW_BYTES / 2;
    let window = pc.map_or(0..0, |pc| pc.saturating_sub(half)..pc.saturating_add(half));
    let is_here = |image: &Image<'_>| pc.is_some_and(|pc| is_in(pc, image));
    let here: Vec<Option<bool>> = images
        .iter()
        .map(|image| if is_here(image) { fit(image, read, &window) } else { fit(image, read, &(0..u32::MAX)) })
        .collect();
    let whole: Vec<Option<bool>> = images.iter().map(|image| fit(image, read, &(0..u32::MAX))).collect();
    let fits_here = here.iter().filter(|fit| **fit == Some(true)).count();
    let fits_whole = here.iter().zip(&whole).filter(|both| *both == (&Some(true), &Some(true))).count();
    let one = |(here, whole): (&Option<bool>, &Option<bool>)| match (here, whole) {
        (Some(false), _) => Residency::Mismatch,
        (Some(true), _) if fits_here == 1 => Residency::Match,
        (Some(true), Some(true)) if fits_whole == 1 => Residency::Match,
        (Some(true), Some(false)) if fits_whole > 0 => Residency::Mismatch,
        _ => Residency::Indistinguishable,
    };
    here.iter().zip(&whole).map(one).collect()
}

fn is_in(address: u32, image: &Image<'_>) -> bool {
    let length = image.bytes.map_or(0, <[u8]>::len);
    address.checked_sub(image.start).is_some_and(|at| (at as usize) < length)
}

/// Whether all that was read in `within` and inside of an image is as the image has it; `None` when nothing was.
pub fn fit(image: &Image<'_>, read: &[(Range<u32>, Vec<u8>)], within: &Range<u32>) -> Option<bool> {
    let bytes = image.bytes?;
    let mut compared = None;
    for (place, live) in read {
        for (address, byte) in place.clone().zip(live).filter(|(address, _)| within.contains(address)) {
            let own = address.checked_sub(image.start).and_then(|at| bytes.get(at as usize));
            if let Some(own) = own {
                if own != byte {
                    return Some(false);
                }
                compared = Some(true);
            }
        }
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = 0x0210_0000;

    fn said(pc: u32, live: &[u8], images: &[&[u8]]) -> Vec<Residency> {
        let images: Vec<_> = images.iter().map(|bytes| Image { start: BASE, bytes: Some(bytes) }).collect();
        let places = places(pc, &images);
        let read: Vec<_> = places
            .into_iter()
            .map(|place| {
                let at = (place.start - BASE) as usize..(place.end - BASE) as usize;
                (place, live[at].to_vec())
            })
            .collect();
        compare(Some(pc), &images, &read)
    }

    #[test]
    fn the_loaded_one_is_told_from_the_others() {
        let (a, b) = ([1_u8; 2_000], [2_u8; 2_000]);
        for pc in [BASE + 16, 0] {
            assert_eq!(said(pc, &a, &[&a, &b]), [Residency::Match, Residency::Mismatch]);
            assert_eq!(said(pc, &b, &[&a, &b]), [Residency::Mismatch, Residency::Match]);
            assert_eq!(said(pc, &a, &[&a, &a]), [Residency::Indistinguishable; 2]);
        }
    }

    #[test]
    fn samples_decide_between_those_that_agree_around_pc() {
        let a = [1_u8; 2_000];
        let mut b = a;
        b[1_900..].fill(2);
        assert_eq!(said(BASE + 16, &a, &[&a, &b]), [Residency::Match, Residency::Mismatch]);
        // Its data was written to: no sample fits any more, and around pc both do.
        let mut written = a;
        written[1_900..].fill(3);
        assert_eq!(said(BASE + 16, &written, &[&a, &b]), [Residency::Indistinguishable; 2]);
        // With different code around pc, data that was written to changes nothing.
        let c = [4_u8; 2_000];
        assert_eq!(said(BASE + 16, &written, &[&a, &c]), [Residency::Match, Residency::Mismatch]);
    }

    #[test]
    fn one_that_is_being_loaded_is_none_of_them() {
        let (a, b) = ([1_u8; 2_000], [2_u8; 2_000]);
        let half = [&a[..1_000], &b[1_000..]].concat();
        assert_eq!(said(0, &half, &[&a, &b]), [Residency::Mismatch, Residency::Mismatch]);
    }

    #[test]
    fn large_images_that_differ_in_little_are_compared_there() {
        let a = vec![1_u8; 100_000];
        let mut b = a.clone();
        b[77_777] = 2;
        assert_eq!(said(BASE + 16, &a, &[&a, &b]), [Residency::Match, Residency::Mismatch]);
        assert_eq!(said(BASE + 16, &b, &[&a, &b]), [Residency::Mismatch, Residency::Match]);
    }

    #[test]
    fn without_bytes_nothing_is_said() {
        let images = [Image { start: BASE, bytes: None }];
        assert!(places(BASE, &images).is_empty());
        assert_eq!(compare(Some(BASE), &images, &[]), [Residency::Indistinguishable]);
    }

    #[test]
    fn places_lie_in_the_images_and_are_few() {
        let image = vec![0; 1_000_000];
        let images = [Image { start: BASE, bytes: Some(&image) }];
        let places = places(BASE + 500_001, &images);
        assert!(places.len() <= 9, "{places:?}");
        let sum: u32 = places.iter().map(|place| place.end - place.start).sum();
        // A window of 256 bytes and eight samples of 64.
        assert_eq!(sum, 256 + 8 * 64);
        assert_eq!((places[0].start, places.last().unwrap().end), (BASE, BASE + 1_000_000));
    }
}
