//! What is typed, as the keyboard's codes in PETSCII.

use crate::Problem;
use crate::charset::Encoding;
use base::limits;

/// The keys of a text. Letters of either case are the plain keys, a line's end is RETURN, other characters are those of the set
/// with upper-case letters; `{CLR}` is a control code by its name, `{$9D}` any code.
///
/// # Errors
/// `Option` for a character that no key has, an unknown name, no key at all, and more than [`limits::MAX_C64_KEYS`].
pub fn keys(text: &str) -> Result<Vec<u8>, Problem> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let behind = rest.get(character.len_utf8()..).unwrap_or_default();
        if character == '{' {
            let (name, behind) = behind
                .split_once('}')
                .ok_or_else(|| Problem::option("a { has no }: a key's name stands between them, such as {CLR}"))?;
            keys.push(named(name)?);
            rest = behind;
            continue;
        }
        keys.push(key(character)?);
        rest = behind;
    }
    let most = limits::MAX_C64_KEYS;
    match keys.len() {
        0 => Err(Problem::option("text is empty: there is nothing to type")),
        count if count > most => {
            Err(Problem::option(format!("text has {count} keys; at most {most} are typed at once")))
        }
        _ => Ok(keys),
    }
}

fn key(character: char) -> Result<u8, Problem> {
    match character {
        '\r' | '\n' => return Ok(0x0D),
        'a'..='z' | 'A'..='Z' => {
            // The plain key of a letter has the code of its upper-case character in ASCII.
            return u8::try_from(character.to_ascii_uppercase()).map_err(|_| unknown(character));
        }
        _ => {}
    }
    let table = Encoding::PetsciiUpper.table();
    table
        .iter()
        .find(|entry| entry.unicode == Some(character))
        .map(|entry| entry.byte)
        .ok_or_else(|| unknown(character))
}

fn unknown(character: char) -> Problem {
    Problem::option(format!(
        "no key types `{character}`; {{$xx}} types any code, two hexadecimal digits in place of xx"
    ))
}

fn named(name: &str) -> Result<u8, Problem> {
    let name = name.to_ascii_uppercase();
    if let Some(digits) = name.strip_prefix('$') {
        // No key has the code 0, and emulators end the text there.
        let plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = u8::from_str_radix(digits, 16).ok().filter(|code| plain && *code != 0);
        return code.ok_or_else(|| {
            Problem::option(format!("{{{name}}} is no code: {{$9D}} has two hexadecimal digits, and 00 is no key"))
        });
    }
    let table = Encoding::PetsciiUpper.table();
    table.iter().find(|entry| !entry.printable && entry.name == name).map(|entry| entry.byte).ok_or_else(|| {
        Problem::option(format!(
            "{{{name}}} is no key; those that have names are {{RETURN}}, {{CLR}}, {{HOME}}, {{F1}} and so on"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_typed_on_the_keys_that_have_it() {
        // Programmer's Reference Guide, appendix C: A is 65, RETURN 13, CLR 147, F1 133, the arrow up 94.
        assert_eq!(keys("Run:a1\n").unwrap(), [82, 85, 78, 58, 65, 49, 13]);
        assert_eq!(keys("{clr}{F1}\u{2191}{$9d}").unwrap(), [147, 133, 94, 0x9D]);
        assert_eq!(keys("\"*\",8,1").unwrap(), *b"\"*\",8,1");
    }

    #[test]
    fn what_no_key_types_is_named() {
        for (text, words) in [
            ("", "nothing to type"),
            ("\u{e9}", "no key types"),
            ("{CLR", "has no }"),
            ("{FIRE}", "{FIRE} is no key"),
            ("{$1}", "two hexadecimal digits"),
            ("{$+1}", "two hexadecimal digits"),
            ("{$00}", "00 is no key"),
        ] {
            let problem = keys(text).unwrap_err();
            assert!(problem.message.contains(words), "{text}: {}", problem.message);
        }
        assert!(keys(&"x".repeat(limits::MAX_C64_KEYS)).is_ok());
        assert!(keys(&"x".repeat(limits::MAX_C64_KEYS + 1)).unwrap_err().message.contains("256 keys"));
    }
}
