//! Pictures of the program's window.

use super::rig::*;

/// An X server of our own.
struct Xvfb {
    _server: Running,
    display: String,
}

impl Xvfb {
    fn start() -> Xvfb {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut number = String::new();
        use std::io::BufRead;
        std::io::BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Xvfb { _server: Running(server), display: format!(":{}", number.trim()) }
    }
}

/// The picture that driftgame's README describes for a paused game.
fn paused_picture() -> Vec<u8> {
    let mut rgb = Vec::new();
    for y in 0..240 {
        for x in 0..320 {
            let mark = (90..150).contains(&y) && ((130..150).contains(&x) || (170..190).contains(&x));
            rgb.extend([if mark { 0xe0 } else { 0x60 }; 3]);
        }
    }
    rgb
}

#[test]
fn a_picture_of_the_window_shows_what_the_program_drew() {
    use x11rb::connection::Connection;
    use x11rb::protocol::xproto::{ConfigureWindowAux, ConnectionExt};
    let xvfb = Xvfb::start();
    let (connection, screen) = x11rb::connect(Some(&xvfb.display)).unwrap();
    let root = connection.setup().roots[screen].root;
    for bits in BITS {
        let mut platform = LinuxPlatform::new().unwrap();
        let mut spec = spec(driftgame(bits), &["--window", "--start", "paused"]);
        spec.env.insert("DISPLAY".to_owned(), xvfb.display.clone());
        let start = platform.launch(&spec).unwrap();
        let mut rig = Rig { platform, start };
        let take = |rig: &Rig, title: Option<&str>| rig.platform.screenshot(title).unwrap()();
        let refused = take(&rig, None).unwrap_err();
        assert!(matches!(&refused, PlatformError::NoWindow(text) if text.contains("no window")), "{refused}");
        rig.go(rig.start.thread);
        eventually("the picture", || take(&rig, None).is_ok_and(|picture| picture.rgb == paused_picture()));
        // Halted too, and by its title.
        rig.hold();
        let picture = take(&rig, Some("DRIFT")).unwrap();
        assert_eq!((picture.width, picture.height, picture.title.as_str()), (320, 240, "driftgame"));
        assert_eq!((picture.method, picture.rgb == paused_picture()), ("GetImage", true));
        let refused = take(&rig, Some("no such title")).unwrap_err();
        assert!(matches!(&refused, PlatformError::NoWindow(text) if text.contains("`driftgame`")), "{refused}");
        // Moved half out of the screen at the left: the right part is left.
        let window = connection.query_tree(root).unwrap().reply().unwrap().children[0];
        connection.configure_window(window, &ConfigureWindowAux::new().x(-140)).unwrap().check().unwrap();
        let part = take(&rig, None).unwrap();
        assert_eq!((part.width, part.height, part.method), (180, 240, "GetImage of the part on the screen"));
        let rows = paused_picture();
        let expected: Vec<u8> = rows.chunks(320 * 3).flat_map(|row| row[140 * 3..].to_vec()).collect();
        assert!(part.rgb == expected);
        if bits == Bitness::Bits32 {
            continue;
        }
        // Somebody who has grabbed the server does not keep us waiting for ever.
        connection.grab_server().unwrap();
        connection.flush().unwrap();
        connection.get_input_focus().unwrap().reply().unwrap();
        let begin = Instant::now();
        assert_eq!(take(&rig, None), Err(PlatformError::Timeout("the X server's greeting")));
        assert!(begin.elapsed() < LIMIT);
        connection.ungrab_server().unwrap();
        connection.flush().unwrap();
    }
    for display in [":5999", ":59999", ":99999", "elsewhere.invalid:0", "nonsense", "/no/such/socket"] {
        let mut platform = LinuxPlatform::new().unwrap();
        let mut spec = spec(driftgame(Bitness::Bits64), &["--headless"]);
        spec.env.insert("DISPLAY".to_owned(), display.to_owned());
        let start = platform.launch(&spec).unwrap();
        let rig = Rig { platform, start };
        let refused = rig.platform.screenshot(None).unwrap()().unwrap_err();
        assert!(matches!(&refused, PlatformError::NoDisplay(text) if text.contains(display)), "{refused}");
    }
}
