//! Recognizes the platform of a shared library by its header.
//!
//! In: the first bytes of a file. Out: the operating system and the processor. Sources: the ELF specification, Apple's
//! `mach-o/loader.h` and `mach-o/fat.h`, and Microsoft's PE format.

use std::fmt;

/// The number of bytes at the start of a library that contain all fields read here, in every format.
pub(super) const HEADER_BYTES: u64 = 4_096;

const X86_64: &str = "x86_64";
const AARCH64: &str = "aarch64";
const OTHER: &str = "another processor";
/// The processors of a library that contains code for several.
const SEVERAL: &str = "several processors";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    /// Linux, and other systems with ELF files.
    Linux,
    MacOs,
    Windows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Platform {
    system: System,
    processor: &'static str,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let system = match self.system {
            System::Linux => "Linux",
            System::MacOs => "macOS",
            System::Windows => "Windows",
        };
        write!(f, "{system} on {}", self.processor)
    }
}

impl Platform {
    pub(super) fn of_this_program() -> Platform {
        let system = match std::env::consts::OS {
            "macos" => System::MacOs,
            "windows" => System::Windows,
            _ => System::Linux,
        };
        let processor = std::env::consts::ARCH;
        Platform { system, processor }
    }

    /// Returns the platform of a library; `None` for another file.
    pub(super) fn of_library(header: &[u8]) -> Option<Platform> {
        match header.get(..4)? {
            [0x7f, b'E', b'L', b'F'] => {
                let processor = match half(header, 18)? {
                    62 => X86_64,
                    183 => AARCH64,
                    _ => OTHER,
                };
                Some(Platform { system: System::Linux, processor })
            }
            [0xcf, 0xfa, 0xed, 0xfe] => {
                let processor = match word(header, 4)? {
                    0x0100_0007 => X86_64,
                    0x0100_000c => AARCH64,
                    _ => OTHER,
                };
                Some(Platform { system: System::MacOs, processor })
            }
            [0xca, 0xfe, 0xba, 0xbe | 0xbf] => Some(Platform { system: System::MacOs, processor: SEVERAL }),
            [b'M', b'Z', ..] => {
                let begin = usize::try_from(word(header, 0x3c)?).ok()?;
                let processor = match (word(header, begin)?, half(header, begin.checked_add(4)?)?) {
                    (0x0000_4550, 0x8664) => X86_64,
                    (0x0000_4550, 0xaa64) => AARCH64,
                    (0x0000_4550, _) => OTHER,
                    _ => return None,
                };
                Some(Platform { system: System::Windows, processor })
            }
            _ => None,
        }
    }

    pub(super) fn can_run_on(self, other: Platform) -> bool {
        self.system == other.system && (self.processor == other.processor || self.processor == SEVERAL)
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn elf(processor: &str) -> Vec<u8> {
        let mut header = vec![0; 64];
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        header[16] = 3;
        header[18] = if processor == AARCH64 { 183 } else { 62 };
        header
    }

    pub(crate) fn windows_library() -> Vec<u8> {
        let mut header = vec![0; 256];
        header[..2].copy_from_slice(b"MZ");
        header[0x3c] = 0x80;
        header[0x80..0x86].copy_from_slice(&[b'P', b'E', 0, 0, 0x64, 0x86]);
        header
    }

    fn shown(header: &[u8]) -> Option<String> {
        Platform::of_library(header).map(|platform| platform.to_string())
    }

    #[test]
    fn platforms_are_recognized() {
        let mac = |processor: u8| [0xcf, 0xfa, 0xed, 0xfe, processor, 0, 0, 1];
        assert_eq!(shown(&elf(X86_64)).as_deref(), Some("Linux on x86_64"));
        assert_eq!(shown(&elf(AARCH64)).as_deref(), Some("Linux on aarch64"));
        assert_eq!(shown(&mac(7)).as_deref(), Some("macOS on x86_64"));
        assert_eq!(shown(&mac(12)).as_deref(), Some("macOS on aarch64"));
        assert_eq!(shown(&[0xca, 0xfe, 0xba, 0xbe]).as_deref(), Some("macOS on several processors"));
        assert_eq!(shown(&windows_library()).as_deref(), Some("Windows on x86_64"));
    }

    #[test]
    fn header_that_ends_early_is_not_a_library() {
        for whole in [elf(X86_64), windows_library()] {
            for length in 0..20 {
                assert_eq!(shown(&whole[..length]), None, "{length}");
            }
        }
        // The place of the second header is outside the file.
        let mut header = windows_library();
        header[0x3c..0x40].fill(0xff);
        assert_eq!(shown(&header), None);
    }

    #[test]
    fn library_of_this_program_can_run() {
        let this = Platform::of_this_program();
        assert!(this.can_run_on(this));
        assert!(Platform { processor: SEVERAL, ..this }.can_run_on(this));
        assert!(!Platform { processor: OTHER, ..this }.can_run_on(this));
    }
}
