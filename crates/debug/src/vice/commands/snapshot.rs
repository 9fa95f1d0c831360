//! Commands 0x41, "Dump", and 0x42, "Undump": snapshots of the machine in files of VICE's own form.

use super::super::error::Error;
use super::super::framing::Fields;
use super::super::session::Request;

const DUMP: u8 = 0x41;
const UNDUMP: u8 = 0x42;

/// What is sent to save one.
///
/// # Errors
/// [`Error::Argument`] for a path that is not absolute or does not fit into 255 bytes.
pub fn dump(path: &str, roms: bool, disks: bool) -> Result<Request, Error> {
    let mut body = vec![u8::from(roms), u8::from(disks)];
    body.extend(name(path)?);
    Ok(Request::new(DUMP, body))
}

/// What is sent to load one.
///
/// # Errors
/// As [`dump`].
pub fn undump(path: &str) -> Result<Request, Error> {
    Ok(Request::new(UNDUMP, name(path)?))
}

/// Reads the answer to [`undump`]: where the machine is now.
///
/// # Errors
/// [`Error::Protocol`].
pub fn undumped(body: &[u8]) -> Result<u16, Error> {
    Fields::of(body, "a program counter").word()
}

fn name(path: &str) -> Result<Vec<u8>, Error> {
    let length = u8::try_from(path.len()).ok();
    match length {
        // VICE's own folder is not ours.
        Some(length) if std::path::Path::new(path).is_absolute() && !path.contains('\0') => {
            let mut bytes = vec![length];
            bytes.extend_from_slice(path.as_bytes());
            Ok(bytes)
        }
        _ => Err(Error::Argument("path must be absolute and at most 255 bytes long".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!(dump("/t/a", true, false).unwrap().body(), b"\x01\x00\x04/t/a");
        assert_eq!(undump("/t/a").unwrap().body(), b"\x04/t/a");
        assert_eq!(undumped(&[0xF6, 0x08]).unwrap(), 0x08F6);
        for bad in ["a.vsf", "", &format!("/{}", "x".repeat(255)), "/a\0b"] {
            assert!(matches!(undump(bad), Err(Error::Argument(_))), "{bad:?}");
        }
    }
}
