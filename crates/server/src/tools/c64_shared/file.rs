//! Bytes of files below the workspace: program files with their load address, and what known containers are.

use super::invalid;
use crate::context::Context;
use crate::errors::{ErrorCode, ToolError};
use base::limits;
use c64::picture_file::{self, Form, Parts, Prg};
use std::io::Read as _;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its path as it was asked for.
    pub path: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// Which part of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Where it begins: in the file, or, in a program file, as an address of the machine.
    pub offset: Option<u64>,
    /// Whether the file begins with a load address.
    pub prg: bool,
}

/// Reads a file.
///
/// # Errors
/// `workspace_missing`, `path_refused`, `file_not_found`, `file_refused`.
pub fn read(context: &Context, path: &str) -> Result<Loaded, ToolError> {
    let opened = context.workspace()?.open_file(path, limits::MAX_C64_FILE_BYTES)?;
    let mut bytes = Vec::new();
    // It may have grown since it was opened.
    opened.file.take(limits::MAX_C64_FILE_BYTES).read_to_end(&mut bytes).map_err(|error| {
        ToolError::new(ErrorCode::FileRefused, format!("`{path}` cannot be read: {error}"))
            .hint("check the rights of the file")
    })?;
    Ok(Loaded { path: path.to_owned(), bytes })
}

impl Loaded {
    /// The bytes of a part, up to the end of the file, and the address or offset of the first.
    ///
    /// # Errors
    /// `invalid_arguments` for a part that is not in the file.
    pub fn part(&self, part: Part) -> Result<(u64, &[u8]), ToolError> {
        if part.prg {
            let prg = Prg::new(&self.bytes).map_err(|problem| self.named(&problem))?;
            let address = part.offset.unwrap_or(prg.load_address.into());
            let bytes = prg.from_address(address).map_err(|problem| self.named(&problem))?;
            return Ok((address, bytes));
        }
        let offset = part.offset.unwrap_or_default();
        let bytes = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..));
        match bytes.filter(|bytes| !bytes.is_empty()) {
            Some(bytes) => Ok((offset, bytes)),
            None => Err(invalid(format!("`{}` has {} bytes, and offset is {offset}", self.path, self.bytes.len()))
                .hint("offset counts from the start of the file; with prg: true it is an address of the C64")),
        }
    }

    /// The parts of a picture, multicolor or hires.
    ///
    /// # Errors
    /// `invalid_arguments` when it is no such picture, with the tool that shows it if there is one.
    pub fn picture(&self, multicolor: bool) -> Result<Parts<'_>, ToolError> {
        picture_file::parts(&self.bytes, multicolor).map_err(|problem| match self.hint() {
            Some(hint) => self.named(&problem).hint(hint),
            None => self.named(&problem),
        })
    }

    fn named(&self, problem: &c64::Problem) -> ToolError {
        invalid(format!("`{}`: {}", self.path, problem.message))
    }

    /// What the file is, when it is a known container, and how to show it.
    pub fn hint(&self) -> Option<String> {
        let known = picture_file::recognise(&self.path, &self.bytes)?;
        let how = match known.form {
            Form::Koala | Form::KoalaWithoutBackground => {
                format!("decode_c64_multicolor_bitmap with picture: {:?} shows it", self.path)
            }
            Form::ArtStudio => format!("decode_c64_hires_bitmap with picture: {:?} shows it", self.path),
            Form::Charset => "decode_c64_charset with prg: true in the source shows it".to_owned(),
        };
        Some(format!("`{}` is {known}; {how}", self.path))
    }
}
