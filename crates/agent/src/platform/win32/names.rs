//! What Windows' exception codes are called, and what is known about each.

/// A breakpoint instruction.
pub const BREAKPOINT: u32 = 0x8000_0003;
/// A debug exception (#DB).
pub const SINGLE_STEP: u32 = 0x8000_0004;
/// [`BREAKPOINT`] of a 32-bit program, as a 64-bit Windows tells its 64-bit debugger.
pub const WX86_BREAKPOINT: u32 = 0x4000_001f;
/// [`SINGLE_STEP`] of a 32-bit program, as a 64-bit Windows tells its 64-bit debugger.
pub const WX86_SINGLE_STEP: u32 = 0x4000_001e;
/// Names a thread: how programs did it before `SetThreadDescription`.
pub const SET_THREAD_NAME: u32 = 0x406d_1388;

const ACCESS_VIOLATION: u32 = 0xc000_0005;
const IN_PAGE_ERROR: u32 = 0xc000_0006;

/// Codes with their names, and whether the instruction at the program counter raised it and has not completed.
const NAMES: &[(u32, &str, bool)] = &[
    (0x4000_0015, "STATUS_FATAL_APP_EXIT", false),
    (0x4001_0005, "DBG_CONTROL_C", false),
    (0x4001_0006, "DBG_PRINTEXCEPTION_C", false),
    (0x4001_0008, "DBG_CONTROL_BREAK", false),
    (0x4001_000a, "DBG_PRINTEXCEPTION_WIDE_C", false),
    (SET_THREAD_NAME, "MS_VC_SET_THREAD_NAME", false),
    (0x8000_0001, "EXCEPTION_GUARD_PAGE", true),
    (0x8000_0002, "EXCEPTION_DATATYPE_MISALIGNMENT", true),
    (BREAKPOINT, "EXCEPTION_BREAKPOINT", false),
    (SINGLE_STEP, "EXCEPTION_SINGLE_STEP", false),
    (ACCESS_VIOLATION, "EXCEPTION_ACCESS_VIOLATION", true),
    (IN_PAGE_ERROR, "EXCEPTION_IN_PAGE_ERROR", true),
    (0xc000_0008, "EXCEPTION_INVALID_HANDLE", false),
    (0xc000_0017, "STATUS_NO_MEMORY", false),
    (0xc000_001d, "EXCEPTION_ILLEGAL_INSTRUCTION", true),
    (0xc000_0025, "EXCEPTION_NONCONTINUABLE_EXCEPTION", false),
    (0xc000_0026, "EXCEPTION_INVALID_DISPOSITION", false),
    (0xc000_008c, "EXCEPTION_ARRAY_BOUNDS_EXCEEDED", true),
    (0xc000_008d, "EXCEPTION_FLT_DENORMAL_OPERAND", true),
    (0xc000_008e, "EXCEPTION_FLT_DIVIDE_BY_ZERO", true),
    (0xc000_008f, "EXCEPTION_FLT_INEXACT_RESULT", true),
    (0xc000_0090, "EXCEPTION_FLT_INVALID_OPERATION", true),
    (0xc000_0091, "EXCEPTION_FLT_OVERFLOW", true),
    (0xc000_0092, "EXCEPTION_FLT_STACK_CHECK", true),
    (0xc000_0093, "EXCEPTION_FLT_UNDERFLOW", true),
    (0xc000_0094, "EXCEPTION_INT_DIVIDE_BY_ZERO", true),
    (0xc000_0095, "EXCEPTION_INT_OVERFLOW", true),
    (0xc000_0096, "EXCEPTION_PRIV_INSTRUCTION", true),
    (0xc000_00fd, "EXCEPTION_STACK_OVERFLOW", true),
    (0xc000_0135, "STATUS_DLL_NOT_FOUND", false),
    (0xc000_0139, "STATUS_ENTRYPOINT_NOT_FOUND", false),
    (0xc000_0142, "STATUS_DLL_INIT_FAILED", false),
    (0xc000_0194, "EXCEPTION_POSSIBLE_DEADLOCK", false),
    (0xc000_0374, "STATUS_HEAP_CORRUPTION", false),
    (0xc000_0409, "STATUS_STACK_BUFFER_OVERRUN", false),
    (0xc000_0420, "STATUS_ASSERTION_FAILURE", false),
    (0xe06d_7363, "C++ exception", false),
    (0x0eed_fade, "Delphi exception", false),
    (0xe043_4352, "CLR exception", false),
    (0xe043_4f4d, "CLR exception", false),
    (0x2147_4343, "C++ exception (GCC)", false),
    (0x2043_4347, "C++ exception (GCC)", false),
];

/// The name of a code.
pub fn name(code: u32) -> String {
    match NAMES.iter().find(|(known, _, _)| *known == code) {
        Some((_, name, _)) => (*name).to_owned(),
        None => format!("exception 0x{code:08x}"),
    }
}

/// Whether the instruction at the program counter raised it and has not completed.
pub fn is_synchronous(code: u32) -> bool {
    NAMES.iter().any(|(known, _, synchronous)| *known == code && *synchronous)
}

/// The address that could not be reached, of the exceptions that have one (their second parameter).
pub fn fault_address(code: u32, parameters: &[u64]) -> Option<u64> {
    matches!(code, ACCESS_VIOLATION | IN_PAGE_ERROR | 0x8000_0001).then(|| parameters.get(1).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_the_windows_headers() {
        assert_eq!(name(0xc000_0005), "EXCEPTION_ACCESS_VIOLATION");
        assert_eq!(name(0x0eed_fade), "Delphi exception");
        assert_eq!(name(0x1234_5678), "exception 0x12345678");
        assert!(
            NAMES.iter().enumerate().all(|(at, (code, ..))| NAMES.iter().skip(at + 1).all(|(other, ..)| code != other))
        );
    }

    #[test]
    fn only_accesses_have_a_fault_address() {
        assert_eq!(fault_address(0xc000_0005, &[1, 0x10]), Some(0x10));
        assert_eq!(fault_address(0xc000_0005, &[]), None);
        assert_eq!(fault_address(0xc000_0094, &[1, 0x10]), None);
    }

    #[test]
    fn a_raised_exception_is_not_of_the_instruction() {
        assert!(is_synchronous(0xc000_0094) && !is_synchronous(0xe06d_7363) && !is_synchronous(0xdead_beef));
    }
}
