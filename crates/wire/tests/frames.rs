//! Framing: however a stream of bytes is cut into pieces, the same lines come out of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proptest::prelude::*;
use std::io::{self, BufRead, Read};
use wire::{FrameError, LineReader};

/// Gives the bytes in pieces of the given lengths, over and over.
struct Pieces<'a> {
    bytes: &'a [u8],
    lengths: Vec<usize>,
    turn: usize,
    left: usize,
}

impl<'a> Pieces<'a> {
    fn new(bytes: &'a [u8], lengths: Vec<usize>) -> Self {
        let left = lengths[0];
        Self { bytes, lengths, turn: 0, left }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.bytes[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.bytes[..self.left.min(self.bytes.len())])
    }

    fn consume(&mut self, amount: usize) {
        self.bytes = &self.bytes[amount..];
        self.left -= amount;
        if self.left == 0 {
            self.turn = (self.turn + 1) % self.lengths.len();
            self.left = self.lengths[self.turn];
        }
    }
}

/// `Some(line)`, or `None` for one that was too long.
type Lines = Vec<Option<Vec<u8>>>;

fn read_all(input: impl BufRead, limit: usize) -> Lines {
    let mut reader = LineReader::new(input, limit);
    let mut lines = Vec::new();
    loop {
        match reader.next_line() {
            Ok(Some(line)) => lines.push(Some(line.to_vec())),
            Ok(None) => return lines,
            Err(FrameError::TooLong { limit: told, start }) => {
                assert_eq!(told, limit);
                assert!(start.len() <= 16, "{start:?}");
                lines.push(None);
            }
            Err(FrameError::Io(error)) => panic!("{error}"),
        }
    }
}

/// The whole input at once, cut at the newlines.
fn cut(bytes: &[u8], limit: usize) -> Lines {
    let mut parts: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    // What stands after the last newline is no line.
    parts.pop();
    let line = |part: &[u8]| (part.len() <= limit).then(|| part.strip_suffix(b"\r").unwrap_or(part).to_vec());
    parts.into_iter().map(line).collect()
}

/// Bytes in which newlines, carriage returns and others are all frequent.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>(), Just(b'{')];
    prop::collection::vec(byte, 0..400)
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_lines(
        bytes in stream(),
        lengths in prop::collection::vec(1usize..50, 1..10),
        limit in 0usize..40,
    ) {
        prop_assert_eq!(read_all(Pieces::new(&bytes, lengths), limit), cut(&bytes, limit));
    }

    #[test]
    fn a_line_that_is_too_long_says_how_it_begins(
        line in prop::collection::vec(any::<u8>().prop_filter("no newline", |byte| *byte != b'\n'), 21..200),
        lengths in prop::collection::vec(1usize..50, 1..10),
    ) {
        let mut bytes = line.clone();
        bytes.extend_from_slice(b"\nnext\n");
        let mut reader = LineReader::new(Pieces::new(&bytes, lengths), 20);
        match reader.next_line() {
            Err(FrameError::TooLong { limit, start }) => prop_assert_eq!((limit, start.as_slice()), (20, &line[..16])),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(reader.next_line().unwrap(), Some(b"next".as_slice()));
        prop_assert_eq!(reader.next_line().unwrap(), None);
    }
}

#[test]
fn the_limit_is_exact_and_a_carriage_return_counts() {
    for (input, line) in [
        ("abc\n", Some("abc")),
        ("ab\r\n", Some("ab")),
        ("abcd\n", None),
        ("abc\r\n", None),
        ("\n", Some("")),
        ("\r\n", Some("")),
        ("\r\r\n", Some("\r")),
        ("a\rb\n", Some("a\rb")),
    ] {
        assert_eq!(read_all(input.as_bytes(), 3), [line.map(|line| line.as_bytes().to_vec())], "{input:?}");
    }
}

#[test]
fn a_line_that_never_ends_takes_no_memory() {
    // 8 GiB would not fit; that this returns shows that nothing is kept.
    let endless = io::repeat(b'x').take(256 * 1024 * 1024);
    let mut reader = LineReader::new(io::BufReader::new(endless), 1024);
    assert!(matches!(reader.next_line(), Ok(None)));
}

#[test]
fn a_failing_stream_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let mut reader = LineReader::new(io::BufReader::new(Broken), 10);
    assert!(matches!(reader.next_line(), Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset));
}
