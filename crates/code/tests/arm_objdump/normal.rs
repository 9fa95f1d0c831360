//! One form for the syntax of objdump and of our text, so that only differences of meaning are left.
//!
//! The same function goes over both sides. It changes spelling only: where two spellings are one instruction in the unified
//! syntax, one of them is chosen.

use code::arm::RegSet;

/// An instruction in the one form: the mnemonic, and the operands in order, without spaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normal {
    pub mnemonic: String,
    pub operands: Vec<String>,
}

/// Brings an instruction into the one form.
pub fn normal(mnemonic: &str, operands: &str) -> Normal {
    // `nop  @ (mov r8, r8)`: objdump's name for a move that does nothing, which has no encoding of its own here.
    if let Some((_, moved)) = operands.split_once("(mov ").filter(|_| mnemonic == "nop") {
        return normal("mov", moved.trim_end_matches(')'));
    }
    let mnemonic = spelled(mnemonic.trim_end_matches(".n"));
    // A comment, and the symbol behind an address.
    let (text, symbol) = match operands.split('@').next().unwrap_or_default().split_once('<') {
        Some((text, _)) => (text, true),
        None => (operands.split('@').next().unwrap_or_default(), false),
    };
    let mut operands: Vec<String> = split(text).iter().map(|operand| spelled_operand(operand)).collect();
    if let (true, [target]) = (symbol, operands.as_mut_slice()) {
        // Branch targets have no `0x` in objdump's listing.
        *target = u32::from_str_radix(text.trim(), 16).expect("an address before a symbol").to_string();
    }
    let stem = |stems: &[&str]| stems.iter().any(|stem| mnemonic.starts_with(stem));
    if stem(&["mcr", "mrc"]) {
        // `p15` and `15`, `cr7` and `c7`, `{4}` and `4`; in place of r15, the flags.
        for operand in &mut operands {
            let bare = operand.trim_matches(['{', '}']).replace("cr", "c");
            *operand = match bare.as_str() {
                "pc" => "apsr_nzcv".to_owned(),
                bare => bare.strip_prefix('p').unwrap_or(bare).to_owned(),
            };
        }
    }
    // The second register of a pair is the first plus one.
    if stem(&["ldrd", "strd"]) && operands.len() > 2 && number(&operands[1]) == number(&operands[0]).map(|n| n + 1) {
        operands.remove(1);
    }
    // `#imm, rotation`: how objdump shows a constant that is not in its shortest form.
    if let [.., constant, rotation] = operands.as_slice()
        && let (Ok(constant), Ok(rotation)) = (constant.parse::<u32>(), rotation.parse::<u32>())
        && !stem(&["mcr", "mrc", "cdp"])
    {
        let value = constant.rotate_right(rotation).to_string();
        operands.truncate(operands.len() - 2);
        operands.push(value);
    }
    // `neg` is subtraction from zero.
    if mnemonic.starts_with("rsbs") && operands.len() == 3 && operands[2] == "0" {
        operands.truncate(2);
        return Normal { mnemonic: mnemonic.replace("rsbs", "negs"), operands };
    }
    // `add r0, r0, r1` is `add r0, r1`, and so is `add r0, r1, r0`, and likewise `mul`.
    if operands.len() == 3 && operands[0] == operands[1] && !stem(&["swp", "ldr", "str"]) {
        operands.remove(0);
    } else if operands.len() == 3 && stem(&["mul", "add"]) && operands[0] == operands[2] {
        operands.truncate(2);
    }
    Normal { mnemonic, operands }
}

/// Conditions `cs` and `cc` are `hs` and `lo`; `ldm` and `stm` mean `ldmia` and `stmia`.
fn spelled(mnemonic: &str) -> String {
    let mnemonic = mnemonic.replace("ldmia", "ldm").replace("stmia", "stm");
    // Here the last letters are a `c` of the name and the `s` that sets flags.
    if ["adcs", "sbcs", "rscs", "bics"].contains(&mnemonic.as_str()) {
        return mnemonic;
    }
    match (mnemonic.strip_suffix("cs"), mnemonic.strip_suffix("cc")) {
        (Some(stem), _) => format!("{stem}hs"),
        (_, Some(stem)) => format!("{stem}lo"),
        _ => mnemonic,
    }
}

/// Splits at commas outside brackets and braces.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for c in text.trim().replace(", ", ",").chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Registers by number, numbers in decimal as 32 bits have them and without `#`; `[r0, #0]` is `[r0]`.
fn spelled_operand(operand: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in operand.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || c == '_' || (c == '-' && out.ends_with('#') && word.is_empty()) {
            word.push(c);
            continue;
        }
        let immediate = out.ends_with('#');
        if immediate {
            out.pop();
        }
        out.push_str(&spelled_word(&word, immediate));
        word.clear();
        if c != '\n' {
            out.push(c);
        }
    }
    out.replace(",0]", "]").to_lowercase()
}

fn spelled_word(word: &str, immediate: bool) -> String {
    match word {
        "sb" => return "r9".to_owned(),
        "sl" => return "r10".to_owned(),
        "fp" => return "r11".to_owned(),
        "ip" => return "r12".to_owned(),
        _ if !immediate && !word.starts_with("0x") => return word.to_owned(),
        _ => {}
    }
    let (minus, digits) = word.strip_prefix('-').map_or((false, word), |digits| (true, digits));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    value.map_or(word.to_owned(), |value| (if minus { -value } else { value } as u32).to_string())
}

/// The number of the register that `operand` is.
fn number(operand: &str) -> Option<u8> {
    match operand {
        "sp" => Some(13),
        "lr" => Some(14),
        "pc" => Some(15),
        _ => operand.strip_prefix('r')?.parse().ok().filter(|number| *number < 13),
    }
}

impl Normal {
    fn is(&self, stems: &[&str]) -> bool {
        stems.iter().any(|stem| self.mnemonic.starts_with(stem))
    }

    /// Registers that the operand at `index` names.
    fn named(&self, index: usize) -> RegSet {
        let operand = self.operands.get(index).map_or("", String::as_str);
        let words = operand.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter_map(number).fold(RegSet::EMPTY, RegSet::with)
    }

    fn is_branch(&self) -> bool {
        self.is(&["b"]) && !self.is(&["bic", "bkpt"])
    }

    /// Registers that the text says it touches, with those that a mnemonic implies.
    pub fn touched(&self) -> RegSet {
        let mut all = (0..self.operands.len()).fold(RegSet::EMPTY, |all, index| all.union(self.named(index)));
        if self.is(&["push", "pop"]) {
            all = all.with(13);
        }
        if self.is(&["ldrd", "strd"]) {
            all = self.named(0).iter().fold(all, |all, first| all.with(first + 1));
        }
        all.union(self.branch_writes())
    }

    fn branch_writes(&self) -> RegSet {
        let calls = self.is(&["bl"]) && !["ble", "blt", "bls", "blo"].contains(&self.mnemonic.as_str());
        let target = if self.is_branch() { RegSet::EMPTY.with(15) } else { RegSet::EMPTY };
        if calls { target.with(14) } else { target }
    }

    /// Registers that the text says it writes.
    pub fn written(&self) -> RegSet {
        let last = self.operands.len().saturating_sub(1);
        let memory = self.operands.iter().position(|operand| operand.starts_with('['));
        // `[rX]!` and `[rX, …]!`, and `[rX], …`.
        let base = memory.filter(|at| *at < last || self.operands[last].ends_with('!')).map(|at| {
            let inside = self.operands[at].trim_start_matches('[');
            number(inside.split([',', ']']).next().unwrap_or_default()).expect("a base register")
        });
        let base = base.into_iter().fold(RegSet::EMPTY, RegSet::with);
        let multiple =
            if self.operands.first().is_some_and(|first| first.ends_with('!')) { self.named(0) } else { base };
        if self.is_branch() {
            return self.branch_writes();
        }
        if self.is(&["push"]) {
            return RegSet::EMPTY.with(13);
        }
        if self.is(&["pop"]) {
            return self.named(0).with(13);
        }
        if self.is(&["ldm"]) {
            return multiple.union(self.named(1));
        }
        if self.is(&["stm"]) {
            return multiple;
        }
        if self.is(&["str", "pld"]) {
            return base;
        }
        if self.is(&["cmp", "cmn", "tst", "teq", "msr", "mcr", "svc", "bkpt"]) {
            return RegSet::EMPTY;
        }
        if self.is(&["smull", "umull", "smlal", "umlal"]) {
            return self.named(0).union(self.named(1));
        }
        if self.is(&["ldrd"]) {
            return self.named(0).iter().fold(base.union(self.named(0)), |all, first| all.with(first + 1));
        }
        if self.is(&["swp"]) {
            return self.named(0);
        }
        if self.is(&["mrc"]) {
            return self.named(2);
        }
        base.union(self.named(0))
    }
}
