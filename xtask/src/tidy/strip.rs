//! Splits Rust source into code and comments, so that a rule about code is not fooled by a string or a comment.

/// Rust source in two halves.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The source with every comment and the inside of every literal blanked; line breaks stay where they were.
    pub code: String,
    /// One entry per line of comment.
    pub comments: Vec<Comment>,
}

/// One line of comment, without its markers.
#[derive(Debug, PartialEq, Eq)]
pub struct Comment {
    /// Counted from 1.
    pub line: usize,
    /// Whether it is documentation (`///`, `//!`, `/**`, `/*!`), where examples of code belong.
    pub doc: bool,
    pub text: String,
}

/// Splits `source`. A literal or comment that never ends runs to the end of the file.
pub fn split(source: &str) -> Split {
    let mut scanner = Scanner { chars: source.chars().collect(), at: 0, line: 1, split: Split::default() };
    while let Some(c) = scanner.peek(0) {
        match c {
            '/' if scanner.peek(1) == Some('/') => scanner.line_comment(),
            '/' if scanner.peek(1) == Some('*') => scanner.block_comment(),
            '"' => scanner.string(),
            '\'' => scanner.quote(),
            'r' | 'b' | 'c' if !scanner.inside_word() => scanner.maybe_raw_string(),
            _ => scanner.keep(),
        }
    }
    scanner.split
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: usize,
    split: Split,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn inside_word(&self) -> bool {
        self.at.checked_sub(1).and_then(|before| self.chars.get(before)).is_some_and(|c| is_word(*c))
    }

    /// Moves one character on and writes it, or a blank in its place.
    fn step(&mut self, keep: bool) {
        let Some(c) = self.peek(0) else { return };
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        self.split.code.push(if keep || c == '\n' { c } else { ' ' });
    }

    fn keep(&mut self) {
        self.step(true);
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            self.step(false);
        }
    }

    fn line_comment(&mut self) {
        let line = self.line;
        let mut text = String::new();
        while let Some(c) = self.peek(0).filter(|c| *c != '\n') {
            text.push(c);
            self.step(false);
        }
        let doc = (text.starts_with("///") && !text.starts_with("////")) || text.starts_with("//!");
        let text = text.trim_start_matches('/').trim_start_matches('!').trim().to_owned();
        self.split.comments.push(Comment { line, doc, text });
    }

    fn block_comment(&mut self) {
        let doc = matches!((self.peek(2), self.peek(3)), (Some('!'), _) | (Some('*'), Some(' ' | '\n')));
        let mut line = self.line;
        let mut text = String::new();
        let mut depth = 0_usize;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => {
                    depth += 1;
                    self.blank(2);
                }
                ('*', Some('/')) => {
                    depth -= 1;
                    self.blank(2);
                    if depth == 0 {
                        break;
                    }
                }
                ('\n', _) => {
                    self.push_block_line(line, doc, &text);
                    text.clear();
                    self.step(false);
                    line = self.line;
                }
                _ => {
                    text.push(c);
                    self.step(false);
                }
            }
        }
        self.push_block_line(line, doc, &text);
    }

    fn push_block_line(&mut self, line: usize, doc: bool, text: &str) {
        let text = text.trim().trim_start_matches(['*', '!']).trim().to_owned();
        self.split.comments.push(Comment { line, doc, text });
    }

    /// A string with escapes, standing on its opening quote.
    fn string(&mut self) {
        self.keep();
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.blank(2),
                '"' => return self.keep(),
                _ => self.step(false),
            }
        }
    }

    /// `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`; anything else that starts with these letters is an ordinary word.
    fn maybe_raw_string(&mut self) {
        let prefix = match (self.peek(0), self.peek(1)) {
            (Some('r'), _) => 1,
            (_, Some('r')) => 2,
            _ => return self.keep(),
        };
        let mut hashes = 0;
        while self.peek(prefix + hashes) == Some('#') {
            hashes += 1;
        }
        if self.peek(prefix + hashes) != Some('"') {
            return self.keep();
        }
        for _ in 0..=(prefix + hashes) {
            self.keep();
        }
        while let Some(c) = self.peek(0) {
            let closes = c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
            if closes {
                for _ in 0..=hashes {
                    self.keep();
                }
                return;
            }
            self.step(false);
        }
    }

    /// A character literal, or the start of a lifetime, which needs no blanking.
    fn quote(&mut self) {
        self.keep();
        if self.peek(0) == Some('\\') {
            self.blank(2);
            while self.peek(0).is_some_and(|c| c != '\'' && c != '\n') {
                self.step(false);
            }
            self.keep();
        } else if self.peek(1) == Some('\'') {
            self.blank(1);
            self.keep();
        }
    }
}

/// Whether `c` can be part of an identifier.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The identifiers and keywords of `code`, each with its line, counted from 1.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(index, line)| {
        line.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(move |word| (index + 1, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        split(source).code
    }

    #[test]
    fn strings_are_blanked_and_code_around_them_stays() {
        assert_eq!(code(r#"f("unsafe \" unsafe", x)"#), r#"f("                ", x)"#);
        assert_eq!(code("b\"todo\" + c\"x\""), "b\"    \" + c\" \"");
        assert_eq!(code("r#\"a\" unsafe\"# b"), "r#\"         \"# b");
        assert_eq!(code("br\"\\\" b"), "br\" \" b");
    }

    #[test]
    fn words_that_only_look_like_raw_strings_stay() {
        assert_eq!(code("r#type bar\"x\""), "r#type bar\" \"");
        assert_eq!(code("number r b c"), "number r b c");
    }

    #[test]
    fn character_literals_are_told_from_lifetimes() {
        assert_eq!(code("'\"' unsafe"), "' ' unsafe");
        assert_eq!(code(r"'\'' unsafe '\u{41}'"), r"'  ' unsafe '      '");
        assert_eq!(code("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
    }

    #[test]
    fn comments_are_taken_out_with_their_lines() {
        let parts = split("//! why\na; // plain\n/* one\n * two /* nested */ end */ b\n/// doc\n");
        assert_eq!(parts.code.lines().map(str::trim).collect::<Vec<_>>(), ["", "a;", "", "b", ""]);
        let seen: Vec<_> = parts.comments.iter().map(|c| (c.line, c.doc, c.text.as_str())).collect();
        assert_eq!(
            seen,
            [
                (1, true, "why"),
                (2, false, "plain"),
                (3, false, "one"),
                (4, false, "two  nested  end"),
                (5, true, "doc")
            ]
        );
    }

    #[test]
    fn what_never_ends_runs_to_the_end_of_the_file() {
        assert_eq!(code("a \"bc"), "a \"  ");
        assert_eq!(code("a /* bc"), "a      ");
    }
}
