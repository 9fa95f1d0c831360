//! A Wine for the tests alone: Debian's 32-bit packages unpacked below the target folder, without multiarch on the machine, and
//! beside them the 64-bit part that Debian installs. One launcher starts both kinds of Windows programs in a prefix of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::private_apt::{PrivateApt, make, remove, unpack, write};
use crate::windows::BOTH;
use crate::xvfb::Xvfb;
use crate::{Outcome, no_arguments, provision, sh, windows, workspace};

/// The Debian release whose Wine the measurements and work-arounds are about.
const RELEASE: &str = "bookworm";

/// Packages of the 32-bit closure that Wine runs without.
const NOT_NEEDED: &[&str] = &["iso-codes", "debconf", "fonts-", "libx11-data", "libcap2-bin", "hicolor-", "adwaita-"];

/// Where Debian's amd64 package has its libraries; ours are beside those of i386.
const LIBRARIES_64: &str = "/usr/lib/x86_64-linux-gnu/wine";

/// The task: install, and say where it is.
pub fn run(arguments: &[String]) -> Outcome {
    no_arguments(arguments)?;
    provision::debian()?;
    windows::fixtures()?;
    let wine = Wine::install()?;
    println!("{}", wine.launcher().display());
    Ok(())
}

/// An installed Wine.
pub struct Wine {
    folder: PathBuf,
}

impl Wine {
    /// Unpacks what is missing and prepares the prefix. The fixtures must have been built.
    pub fn install() -> Result<Self, String> {
        let wine = Self { folder: workspace::target().join("wine") };
        let done = wine.folder.join("unpacked.txt");
        if !done.is_file() {
            wine.unpack()?;
            write(&done, RELEASE)?;
        }
        wine.write_launcher()?;
        if !wine.prefix().join("drive_c/windows/syswow64/bcryptprimitives.dll").is_file() {
            wine.make_prefix()?;
        }
        Ok(wine)
    }

    /// Starts a Windows program: its first argument.
    pub fn launcher(&self) -> PathBuf {
        self.folder.join("bin/wine")
    }

    /// A script that starts one Windows program.
    pub fn script(&self, program: &Path) -> Result<PathBuf, String> {
        let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let script = self.folder.join("bin").join(name.replace(".exe", ""));
        let text = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", self.launcher().display(), program.display());
        write(&script, &text)?;
        sh::output(Command::new("chmod").arg("+x").arg(&script))?;
        Ok(script)
    }

    fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    fn prefix(&self) -> PathBuf {
        self.folder.join("prefix")
    }

    /// Ends everything that runs in the prefix, the server included.
    pub fn end(&self) {
        sh::succeeds(Command::new(self.launcher()).arg("--end"));
    }

    fn unpack(&self) -> Outcome {
        let root = self.root();
        remove(&root)?;
        let apt = PrivateApt::new(self.folder.join("apt"), "i386", RELEASE, "main")?;
        for package in apt.download(&["wine32"])? {
            let name = package.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if !NOT_NEEDED.iter().any(|skipped| name.starts_with(skipped)) {
                unpack(&package, &root)?;
            }
        }
        apt.clean()?;
        remove(&root.join("usr/share/doc"))?;
        remove(&root.join("usr/share/locale"))?;
        self.stamp_zlib()?;
        self.add_64_bit_part()
    }

    /// What Debian's libwine does when it is installed: Wine takes the library only with its own mark in the DOS header.
    fn stamp_zlib(&self) -> Outcome {
        let from = self.root().join("usr/i686-w64-mingw32/lib/zlib1.dll");
        let to = self.root().join("usr/lib/i386-linux-gnu/wine/i386-windows/zlib1.dll");
        let mut bytes = std::fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        let mut mark = *b"Wine builtin DLL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let place = bytes.get_mut(64..64 + mark.len()).ok_or("zlib1.dll is too short")?;
        place.swap_with_slice(&mut mark);
        // It may be a link into a folder that is not there.
        drop(std::fs::remove_file(&to));
        std::fs::write(&to, bytes).map_err(|error| format!("{}: {error}", to.display()))
    }

    /// A 64-bit server serves both kinds of programs. Debian's `wineserver` is a script with fixed paths, which the loader would
    /// find first, so it is replaced.
    fn add_64_bit_part(&self) -> Outcome {
        let programs = self.root().join("usr/lib/wine");
        for (from, to) in [("wine64", "wine64"), ("wineserver64", "wineserver64"), ("wineserver64", "wineserver")] {
            let from = Path::new("/usr/lib/wine").join(from);
            drop(std::fs::remove_file(programs.join(to)));
            std::fs::copy(&from, programs.join(to)).map_err(|error| format!("{}: {error}", from.display()))?;
        }
        let libraries = self.root().join("usr/lib/x86_64-linux-gnu");
        make(&libraries)?;
        sh::output(Command::new("cp").arg("-a").arg(LIBRARIES_64).arg(&libraries))?;
        // With these beside it Wine would run 32-bit programs in its new way, in which debugging does not work.
        remove(&libraries.join("wine/i386-windows"))
    }

    /// Writes the script that starts programs. A shell's background jobs ignore SIGINT, which is Ctrl+C to a Windows program;
    /// a test's agent is to be ended by it wherever the test was started.
    fn write_launcher(&self) -> Outcome {
        make(&self.folder.join("bin"))?;
        let root = self.root();
        let text = format!(
            "#!/bin/sh\n\
             R='{root}'\n\
             # The 32-bit loader would start a 64-bit program as another process, out of reach of the signals for this one.\n\
             LOADER=wine\n\
             if [ -f \"$1\" ]; then\n\
             at=$(od -An -tu4 -j60 -N4 \"$1\")\n\
             [ \"$(od -An -tx2 -j$((at + 4)) -N2 \"$1\")\" = ' 8664' ] && LOADER=wine64\n\
             fi\n\
             export WINEARCH=win64 WINEPREFIX='{prefix}' WINELOADER=\"$R/usr/lib/wine/$LOADER\" WINESERVER=\"$R/usr/lib/wine/wineserver64\"\n\
             export WINEDEBUG=\"${{WINEDEBUG:--all}}\" WINEDLLOVERRIDES='mscoree,mshtml,winedbg.exe='\n\
             L=\"$R/lib/i386-linux-gnu:$R/usr/lib/i386-linux-gnu:$R/usr/lib/i386-linux-gnu/pulseaudio\"\n\
             export LD_LIBRARY_PATH=\"$L${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n\
             [ \"$1\" = --end ] && exec \"$WINESERVER\" -k\n\
             exec env --default-signal=INT \"$WINELOADER\" \"$@\"\n",
            root = root.display(),
            prefix = self.prefix().display(),
        );
        write(&self.launcher(), &text)?;
        sh::output(Command::new("chmod").arg("+x").arg(self.launcher())).map(drop)
    }

    fn make_prefix(&self) -> Outcome {
        remove(&self.prefix())?;
        let xvfb = Xvfb::start()?;
        let mut boot = Command::new("timeout");
        boot.arg("300").arg(self.launcher()).args(["wineboot", "-i"]).env("DISPLAY", xvfb.display());
        sh::run(&mut boot)?;
        self.end();
        let windows = self.prefix().join("drive_c/windows");
        for (kind, folder) in BOTH.iter().zip(["syswow64", "system32"]) {
            let to = windows.join(folder).join("bcryptprimitives.dll");
            std::fs::copy(kind.stand_in(), &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
        Ok(())
    }
}
