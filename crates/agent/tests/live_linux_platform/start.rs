//! Programs that are started, found, attached to, let go, and left without a trace.

use super::rig::*;

#[test]
fn attach_takes_every_thread_and_detach_leaves_a_program_that_runs() {
    for bits in BITS {
        let game = Running::start(driftgame(bits), &["--headless", "--threads", "8", "--spin", "--signals", "500"]);
        eventually("the threads", || std::fs::read_dir(format!("/proc/{}/task", game.pid())).unwrap().count() == 9);
        for _ in 0..10 {
            let mut rig = Rig::attach(game.pid());
            assert_eq!((rig.start.pid, rig.start.bitness), (game.pid(), bits));
            let threads = rig.platform.threads();
            assert_eq!(threads.len(), 9);
            for thread in threads {
                rig.registers(thread);
                assert_eq!(status_field(thread, "TracerPid"), tracer());
            }
            let before = rig.word(G_FRAME_COUNT);
            rig.platform.detach().unwrap();
            assert_eq!(status_field(game.pid(), "TracerPid"), "0");
            eventually("the next frame", || memory_word(game.pid(), G_FRAME_COUNT) > before);
        }
    }
}

#[test]
fn detach_works_while_threads_run_and_passes_signals_on() {
    let game = Running::start(driftgame(Bitness::Bits64), &["--headless", "--threads", "4", "--signals", "200"]);
    for _ in 0..20 {
        let mut rig = Rig::attach(game.pid());
        rig.go_all();
        // Held at a signal that nobody has decided about.
        while !matches!(rig.next(), Event::Exception { .. }) {}
        let before = rig.word(G_ALARMS);
        rig.platform.detach().unwrap();
        eventually("the next alarms", || memory_word(game.pid(), G_ALARMS) > before);
    }
}

#[test]
fn what_cannot_be_started_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let mut platform = LinuxPlatform::new().unwrap();
    let mut refusal = |path: &Path| platform.launch(&spec(path, &[])).unwrap_err();
    let file = |name: &str, bytes: &[u8], mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let missing = folder.path().join("missing");
    assert_eq!(refusal(&missing), PlatformError::NotFound(missing));
    assert!(matches!(refusal(folder.path()), PlatformError::BadProgram(text) if text.contains("folder")));
    let text = refusal(&file("notes.txt", b"hello, world, this is text", 0o755)).to_string();
    assert!(text.contains("not in a format"), "{text}");
    let plain = std::fs::read("/bin/true").unwrap();
    let refused = refusal(&file("unexecutable", &plain, 0o644));
    assert!(matches!(&refused, PlatformError::Permission(text) if text.contains("chmod")), "{refused}");
    let mut arm = plain.clone();
    arm[18] = 0xb7;
    assert!(refusal(&file("arm", &arm, 0o755)).to_string().contains("another processor"));
    let script = refusal(&file("script", b"#!/no/such/interpreter\n", 0o755)).to_string();
    assert!(script.contains("interpreter"), "{script}");
    let mut nowhere = spec("/bin/true", &[]);
    nowhere.cwd = folder.path().join("nowhere");
    assert_eq!(platform.launch(&nowhere).unwrap_err(), PlatformError::NotFound(nowhere.cwd));
    let mut zero = spec("/bin/true", &["a\0b"]);
    zero.cwd = folder.path().to_owned();
    assert!(platform.launch(&zero).unwrap_err().to_string().contains("zero byte"));
    // After all that it still works.
    let started = platform.launch(&spec("/bin/true", &[])).unwrap();
    platform.resume(started.thread, Run::Free, Pending::Discard).unwrap();
    let mut rig = Rig { platform, start: started };
    assert_eq!(rig.exit(), Exit::Code(0));
}

#[test]
fn what_cannot_be_attached_to_is_refused_in_words() {
    let mut platform = LinuxPlatform::new().unwrap();
    let mut refusal = |pid: u32| platform.attach(pid).unwrap_err();
    assert_eq!(refusal(4_194_305), PlatformError::NoProcess(4_194_305));
    assert_eq!(refusal(0), PlatformError::NoProcess(0));
    assert!(refusal(std::process::id()).to_string().contains("itself"));
    assert!(refusal(std::os::unix::process::parent_id()).to_string().contains("started this agent"));
    let mut dead = Command::new("/bin/true").spawn().unwrap();
    eventually("its end", || status_field(dead.id(), "State").starts_with('Z'));
    assert!(refusal(dead.id()).to_string().contains("has ended"));
    dead.wait().unwrap();
    let game = Running::start(driftgame(Bitness::Bits64), &["--headless"]);
    let mut first = Rig::attach(game.pid());
    let traced = refusal(game.pid());
    assert!(matches!(&traced, PlatformError::Permission(text) if text.contains("already debugged")), "{traced}");
    first.platform.detach().unwrap();
    assert_eq!(platform.attach(game.pid()).unwrap().pid, game.pid());
}

#[test]
fn processes_are_found_by_name_and_by_path() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("sleeper-{}", std::process::id());
    let path = folder.path().join(&name);
    std::fs::copy("/bin/sleep", &path).unwrap();
    let sleeper = Running::start(&path, &["60"]);
    eventually("its start", || std::fs::read_link(format!("/proc/{}/exe", sleeper.pid())).is_ok_and(|exe| exe == path));
    let platform = LinuxPlatform::new().unwrap();
    for wanted in [name.as_str(), path.to_str().unwrap()] {
        let found = platform.find_processes(wanted).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].pid, &found[0].path), (sleeper.pid(), &path));
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(platform.find_processes(&name).unwrap()[0].path, path);
    assert_eq!(platform.find_processes("no-such-program-runs").unwrap(), []);
}

#[test]
fn a_program_with_libraries_is_followed_from_its_loader_to_its_entry() {
    let mut rig = Rig::launch("/bin/sleep", &["30"]);
    let thread = rig.start.thread;
    // Held at the loader's first instruction.
    let modules = rig.platform.modules().unwrap();
    let pc = rig.registers(thread).pc;
    let loader = modules.iter().find(|module| pc.is_in(module.base, module.size)).unwrap();
    assert!(loader.name.starts_with("ld-linux"), "{}", loader.name);
    assert!(!modules.iter().any(|module| module.name.starts_with("libc.so")));
    let main = modules.iter().find(|module| module.main).unwrap().clone();
    assert_eq!(main.path, Path::new("/bin/sleep").canonicalize().unwrap());
    // `readelf` is the oracle for the entry; the loader moves it by the bias.
    let header = Command::new("readelf").args(["-h", "/bin/sleep"]).output().unwrap().stdout;
    let header = String::from_utf8(header).unwrap();
    let entry = header.lines().find_map(|line| line.trim().strip_prefix("Entry point address:")).unwrap();
    let entry = u64::from_str_radix(entry.trim().trim_start_matches("0x"), 16).unwrap();
    assert_eq!(rig.platform.entry_point().unwrap().get(), main.bias + entry);
    let hook = rig.platform.loader_breakpoint().unwrap();
    let hooks: Vec<_> = rig.platform.symbols(loader).unwrap().into_iter().filter(|s| s.address == hook).collect();
    assert!(hooks.iter().any(|symbol| symbol.name == "_dl_debug_state"));
    rig.run_to(hook.get());
    rig.run_to(rig.platform.entry_point().unwrap().get());
    let modules = rig.platform.modules().unwrap();
    let libc = modules.iter().find(|module| module.name.starts_with("libc.so")).unwrap();
    // Every address that the kernel lists for a file is inside the module of that file, and nothing else is.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", rig.start.pid)).unwrap();
    for line in maps.lines().filter(|line| line.ends_with(libc.path.to_str().unwrap())) {
        let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        assert!(VirtAddr::new(start).is_in(libc.base, libc.size), "{line}");
    }
    let symbols = rig.platform.symbols(libc).unwrap();
    let nanosleep = symbols.iter().find(|symbol| symbol.name == "clock_nanosleep").unwrap();
    rig.run_to(nanosleep.address.get());
}

#[test]
fn starting_and_ending_programs_leaks_nothing() {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut platform = LinuxPlatform::new().unwrap();
    let mut once = || {
        let start = platform.launch(&spec("/bin/sleep", &["60"])).unwrap();
        platform.resume(start.thread, Run::Free, Pending::Discard).unwrap();
        platform.kill().unwrap();
        let deadline = Instant::now() + LIMIT;
        while !matches!(platform.wait(Duration::from_millis(100)).unwrap(), Some(Event::ProcessExited(_))) {
            assert!(Instant::now() < deadline);
        }
        assert!(!Path::new(&format!("/proc/{}", start.pid)).exists());
        // One that is let go and ends by itself is not left as a zombie either.
        let start = platform.launch(&spec("/bin/true", &[])).unwrap();
        platform.detach().unwrap();
        eventually("its end", || {
            platform.wait(Duration::from_millis(10)).unwrap();
            !Path::new(&format!("/proc/{}", start.pid)).exists()
        });
        let _ = platform.launch(&spec("/etc/passwd", &[]));
    };
    once();
    let before = descriptors();
    for _ in 0..20 {
        once();
    }
    // Other tests open and close files at the same time.
    assert!(descriptors() < before + 20, "{before} before, {} after", descriptors());
}
