//! `cargo xtask bench nds-build`: a rebuild of a 64 MiB ROM of 1,000 files beside a copy and the hashes of source and result, and
//! the BLZ encoder and decoder on a program's worth of code. Each figure is the best of five in this run.
#![allow(clippy::unwrap_used, reason = "a measurement that fails is no measurement")]

use std::hint::black_box;
use std::time::Instant;

use base::Budget;
use nds::rebuild::{ArtifactRef, Plan, apply, evidence, parse, plan, verify};
use nds::testing::RomBuilder;
use nds::{Rom, blz, sha256_hex};

fn best<R>(mut work: impl FnMut() -> R) -> f64 {
    let time = |work: &mut dyn FnMut() -> R| {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    };
    (0..5).map(|_| time(&mut work)).fold(f64::INFINITY, f64::min)
}

/// The same of work on something that is made anew each time, which is not measured: a tool reads it from a file.
fn best_of<T, R>(mut make: impl FnMut() -> T, mut work: impl FnMut(T) -> R) -> f64 {
    let mut time = || {
        let given = make();
        let start = Instant::now();
        black_box(work(given));
        start.elapsed().as_secs_f64()
    };
    (0..5).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let source = RomBuilder::large(64 << 20, 1_000).build();
    let rom = Rom::parse(source.clone()).unwrap();
    let new = b"a new file";
    let manifest = format!(
        "{{\"format\":\"re-mcp-nds-mutation\",\"formatVersion\":2,\"source\":{{\"sha256\":\"{}\"}},\
         \"output\":{{\"filename\":\"m.nds\"}},\"operations\":[{{\"type\":\"add-nitrofs-file\",\"path\":\"new/file\",\
         \"replacement\":{{\"artifact\":\"a\",\"sha256\":\"{}\"}}}}]}}",
        rom.sha256(),
        sha256_hex(new)
    );
    let planned = || -> Plan {
        let mut content = |_: &ArtifactRef| Ok(new.to_vec());
        plan(&rom, parse(manifest.as_bytes()).unwrap(), &mut content, None).unwrap()
    };
    let made = planned();
    let output = apply(&rom, &made).unwrap();
    let floor = best(|| (source.clone(), sha256_hex(&source), sha256_hex(&output)));
    let build = best_of(
        || source.clone(),
        |source| {
            let rom = Rom::parse(source).unwrap();
            let made = planned();
            let report = verify(&rom, &made, apply(&rom, &made).unwrap()).unwrap();
            evidence(&rom, &made, &report).unwrap()
        },
    );
    let hashes = best(|| (sha256_hex(&source), sha256_hex(&output)));
    let judged = best_of(
        || (source.clone(), output.clone()),
        |(source, output)| {
            let rom = Rom::parse(source).unwrap();
            verify(&rom, &made, output).unwrap().changed_bytes
        },
    );
    println!(
        "build:  {build:.3} s, {:.2} times copy and SHA-256 of source and result ({floor:.3} s); wanted 1.5",
        build / floor
    );
    println!("verify: {judged:.3} s, {:.2} times SHA-256 of both ({hashes:.3} s); wanted 1.5", judged / hashes);

    // Words as code has them: few upper halves, many lower ones.
    let mut state = 1_u32;
    let code: Vec<u8> = (0..256 * 1024_u32)
        .flat_map(|at| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (0xe590_0000 | (state >> 28) << 20 | ((state >> 20) & 0xf) << 12 | ((at * 4) & 0xff)).to_le_bytes()
        })
        .collect();
    let stream = blz::encode(&code, 0).unwrap();
    let megabytes = code.len() as f64 / 1e6;
    let encode = megabytes / best(|| blz::encode(&code, 0).unwrap());
    let decode = megabytes / best(|| blz::decode(&stream, &mut Budget::new(1 << 24)).unwrap());
    println!(
        "BLZ: {} bytes to {}: encode {encode:.0} MB/s, wanted 20; decode {decode:.0} MB/s, wanted 300",
        code.len(),
        stream.len()
    );
}
