//! Command 0x72, "Keyboard feed": types into the machine's keyboard queue as soon as the machine runs.

use super::super::error::Error;
use super::super::session::Request;

const FEED: u8 = 0x72;

/// What is sent to type `text`, in PETSCII.
///
/// # Errors
/// [`Error::Argument`] for no byte, for more than 255, and for a byte 0: VICE 3.7.1 says yes and types only what stands before it.
pub fn request(text: &[u8]) -> Result<Request, Error> {
    let length = u8::try_from(text.len()).ok().filter(|length| *length > 0 && !text.contains(&0));
    let Some(length) = length else {
        return Err(Error::Argument("text must be 1 to 255 bytes of PETSCII, none of them 0".to_owned()));
    };
    let mut body = vec![length];
    body.extend_from_slice(text);
    Ok(Request::new(FEED, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_has_the_manuals_bytes() {
        assert_eq!(request(b"RUN\r").unwrap().body(), b"\x04RUN\r");
        assert!(request(b"").is_err() && request(&[1; 256]).is_err() && request(&[1; 255]).is_ok());
        assert!(request(b"A\0B").is_err());
    }
}
