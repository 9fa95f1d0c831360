//! One X server without a screen for the live tests, ended when the value is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::sh;

/// How long Xvfb may take until it names its display; it takes well under a second on an idle machine.
const START_TIME: Duration = Duration::from_secs(30);

/// A running Xvfb.
pub struct Xvfb {
    server: Child,
    display: String,
}

impl Xvfb {
    /// Starts Xvfb on a display that it finds free itself.
    pub fn start() -> Result<Self, String> {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().map_err(|error| format!("cannot start Xvfb: {error}"))?;
        let stdout = server.stdout.take();
        let mut started = Self { server, display: String::new() };

        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
            // The receiver is gone when the time is over; nobody needs the answer then.
            drop(sender.send(read.map(|_| line)));
        });
        let line = receiver.recv_timeout(START_TIME).ok().flatten().unwrap_or_default();
        match line.trim().parse::<u32>() {
            Ok(number) => started.display = format!(":{number}"),
            Err(_) => {
                return Err("Xvfb ended or hung before it named its display; run it by hand to see why".to_owned());
            }
        }
        Ok(started)
    }

    /// The value for `DISPLAY`.
    pub fn display(&self) -> &str {
        &self.display
    }
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        // SIGTERM first: it removes its lock file and socket, which SIGKILL would leave behind.
        let pid = self.server.id().to_string();
        if !sh::succeeds(Command::new("kill").args(["-TERM", &pid])) {
            drop(self.server.kill());
        }
        drop(self.server.wait());
    }
}
