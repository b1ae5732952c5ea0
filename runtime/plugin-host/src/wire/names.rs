//! The two forms of names in the contract.

const MAX_BYTES: usize = 64;

/// Returns whether the text is a plugin's id: `[a-z][a-z0-9_-]*`, at most 64 bytes.
pub(crate) fn is_id(id: &str) -> bool {
    is_name(id, |byte| byte == b'_' || byte == b'-')
}

/// Returns whether the text has the form of a code (of a denial or a finding), of a finding's rule, or of a detector's
/// kind: `[a-z][a-z0-9_]*`, at most 64 bytes.
pub(crate) fn is_code(code: &str) -> bool {
    is_name(code, |byte| byte == b'_')
}

fn is_name(name: &str, is_mark: impl Fn(u8) -> bool) -> bool {
    let is_rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || is_mark(byte);
    let is_first = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    name.len() <= MAX_BYTES && is_first && name.bytes().all(is_rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_letters_digits_and_separators() {
        let long = ["a".repeat(64), "a".repeat(65)];
        let cases = [
            ("a", true, true),
            ("z_score2", true, true),
            ("policy-region", true, false),
            (&long[0], true, true),
            (&long[1], false, false),
            ("", false, false),
            ("2a", false, false),
            ("_a", false, false),
            ("-a", false, false),
            ("Ab", false, false),
            ("a b", false, false),
            ("ä", false, false),
            ("a\n", false, false),
        ];
        for (name, is_an_id, is_a_code) in cases {
            assert_eq!((is_id(name), is_code(name)), (is_an_id, is_a_code), "{name}");
        }
    }
}
