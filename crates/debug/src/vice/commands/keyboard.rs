//! Command 0x72, "Keyboard feed": types into the machine's keyboard queue as soon as the machine runs.

use super::super::error::Error;
use super::super::session::Request;

const FEED: u8 = 0x72;

/// What is sent to type `text`, in PETSCII.
///
/// # Errors
/// [`Error::Argument`] for no byte and for more than 255.
pub fn request(text: &[u8]) -> Result<Request, Error> {
    let Some(length) = u8::try_from(text.len()).ok().filter(|length| *length > 0) else {
        return Err(Error::Argument("text must be 1 to 255 bytes of PETSCII".to_owned()));
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
        assert!(request(b"").is_err() && request(&[0; 256]).is_err());
    }
}
