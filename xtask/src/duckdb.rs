//! Prepares the prebuilt libduckdb in `.prepared/lib/`, where builds find it by `.cargo/config.toml`.
//!
//! In: the table of platforms and pinned checksums. Out: one shared library, and a stamp with the checksums of the
//! archive and of the library. Not here: unverified checksums. The maintainers fetched and hashed the npm package, and
//! several independent projects pin the checksums of the release archives. For a platform without an entry, the feature
//! `bundled` builds DuckDB from its sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::archive::extract_member;
use crate::checksum;
use crate::context::{Context, shown};
use crate::download::{Download, Origin};

/// The version of the engine. The `duckdb` crate in the root manifest is pinned to this version too.
pub(crate) const VERSION: &str = "1.5.6";

struct Platform {
    os: &'static str,
    arch: &'static str,
    library: &'static str,
    archives: &'static [Archive],
}

struct Archive {
    download: Download,
    /// The path of the library in the archive.
    member: &'static str,
}

/// The archives of each platform, in the order in which they are tried.
///
/// The npm package `@duckdb/node-bindings-*` 1.5.6-r.1 exists for Linux x64 only. Other platforms use the release.
const PLATFORMS: &[Platform] = &[
    Platform {
        os: "linux",
        arch: "x86_64",
        library: "libduckdb.so",
        archives: &[
            Archive {
                // The integrity value that npm lists for this archive: sha512-IXcrZJE6kEqM0Z4wwdVnGBHX/frOS33VPNAwDXQ/Q+Fs84b058Qe94chrCCIcNJlG8Y3UHIUU4eBeCQxW5mN1Q==
                download: Download {
                    origin: Origin::Npm("@duckdb/node-bindings-linux-x64@1.5.6-r.1"),
                    file_name: "duckdb-node-bindings-linux-x64-1.5.6-r.1.tgz",
                    sha256: "1b9f82478539bb9a1d1df44bd103121a12ae52142c07158dc52b97d2ec1d69ff",
                },
                member: "package/libduckdb.so",
            },
            Archive {
                download: Download {
                    origin: Origin::Url(release_url),
                    file_name: "libduckdb-linux-amd64.zip",
                    sha256: "b845005f5132a7d8180057c35e14a7626632258782f871a90861b19c1c03841b",
                },
                member: "libduckdb.so",
            },
        ],
    },
    Platform {
        os: "linux",
        arch: "aarch64",
        library: "libduckdb.so",
        archives: &[Archive {
            download: Download {
                origin: Origin::Url(release_url),
                file_name: "libduckdb-linux-arm64.zip",
                sha256: "b72ed9f05003f5e9d2015f7ceada6416b377d9dd33169cdde3c9e33897856eee",
            },
            member: "libduckdb.so",
        }],
    },
    Platform { os: "macos", arch: "x86_64", library: "libduckdb.dylib", archives: MACOS_ARCHIVES },
    Platform { os: "macos", arch: "aarch64", library: "libduckdb.dylib", archives: MACOS_ARCHIVES },
];

/// The archives for macOS: both architectures use the same archive.
const MACOS_ARCHIVES: &[Archive] = &[Archive {
    download: Download {
        origin: Origin::Url(release_url),
        file_name: "libduckdb-osx-universal.zip",
        sha256: "e0bc007d9b0094c0970ac1847a8601d10aad07cbd2910ce586ec810f77b638d6",
    },
    member: "libduckdb.dylib",
}];

/// Ensures that the library exists and is verified.
pub(crate) fn prepare(context: &Context) -> Result<()> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let Some(platform) = PLATFORMS.iter().find(|platform| platform.os == os && platform.arch == arch) else {
        bail!(
            "the table of xtask/src/duckdb.rs has no prebuilt libduckdb {VERSION} for {os} {arch}\n\
             by hand: build with `--features bundled` (compiles DuckDB's C++; half an hour on two cores)"
        );
    };
    let library = context.prepared.join("lib").join(platform.library);
    if is_verified(platform, &library) {
        println!("ok    libduckdb {VERSION} in {}", shown(context, &library));
        return Ok(());
    }
    let downloads = context.downloads();
    fs::create_dir_all(&downloads)?;
    let mut failures = String::new();
    for archive in platform.archives {
        match archive.download.obtain(&downloads).and_then(|path| install(archive, &path, &library)) {
            Ok(()) => {
                println!(
                    "ok    libduckdb {VERSION} from {} in {}",
                    archive.download.file_name,
                    shown(context, &library)
                );
                return Ok(());
            }
            Err(error) => {
                println!("      not from {}: {error:#}", archive.download.file_name);
                failures += &format!("\n  {}: {error:#}", archive.download.file_name);
            }
        }
    }
    bail!("libduckdb {VERSION} could not be prepared:{failures}\n{}", by_hand(platform, &downloads));
}

/// Returns the file name of the library on this platform; `None` if the table lacks the platform.
pub(crate) fn library_name() -> Option<&'static str> {
    PLATFORMS.iter().find(|platform| platform.os == std::env::consts::OS).map(|platform| platform.library)
}

fn by_hand(platform: &Platform, downloads: &Path) -> String {
    let mut text = String::from("by hand, one of:");
    for archive in platform.archives {
        text += &format!("\n  {}", archive.download.by_hand(downloads));
    }
    text + "\n  build with `--features bundled` (compiles DuckDB's C++; half an hour on two cores)\nthen run `cargo xtask setup` again"
}

/// Returns the address of an archive on the release page of DuckDB.
fn release_url(file_name: &str) -> String {
    format!("https://github.com/duckdb/duckdb/releases/download/v{VERSION}/{file_name}")
}

/// Unpacks the library beside its final path, moves the complete file to this path, and then writes the stamp.
fn install(archive: &Archive, path: &Path, library: &Path) -> Result<()> {
    let folder = library.parent().context("the library has no folder")?;
    let unpacked = folder.join(format!(".unpacked-{}", std::process::id()));
    let extracted = extract_member(path, archive.member, &unpacked)?;
    let stamp = format!("{}\n{}\n", archive.download.sha256, checksum::sha256(&extracted)?);
    fs::rename(&extracted, library)?;
    fs::write(stamp_of(library), stamp)?;
    fs::remove_dir_all(&unpacked)?;
    Ok(())
}

/// Returns whether the library matches its stamp, and the stamp matches a pinned archive.
fn is_verified(platform: &Platform, library: &Path) -> bool {
    let Ok(stamp) = fs::read_to_string(stamp_of(library)) else { return false };
    let mut lines = stamp.lines();
    let (Some(archive), Some(expected)) = (lines.next(), lines.next()) else { return false };
    platform.archives.iter().any(|candidate| candidate.download.sha256 == archive) && checksum::is(library, expected)
}

fn stamp_of(library: &Path) -> PathBuf {
    library.with_extension("stamp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_is_a_sha256_and_every_platform_has_an_archive() {
        assert_eq!(PLATFORMS.len(), 4, "Linux and macOS, x64 and arm64");
        for platform in PLATFORMS {
            assert!(!platform.archives.is_empty(), "{} {}", platform.os, platform.arch);
            for archive in platform.archives {
                assert_eq!(archive.download.sha256.len(), 64, "{}", archive.download.file_name);
                assert!(
                    archive.download.sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
                );
                assert!(archive.member.ends_with(platform.library));
            }
        }
    }

    #[test]
    fn library_without_a_matching_stamp_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let platform = &PLATFORMS[0];
        let library = folder.path().join(platform.library);
        fs::write(&library, "not duckdb").unwrap();
        assert!(!is_verified(platform, &library));
        fs::write(stamp_of(&library), format!("{}\n{}\n", platform.archives[0].download.sha256, "0".repeat(64)))
            .unwrap();
        assert!(!is_verified(platform, &library));
        fs::write(
            stamp_of(&library),
            format!("{}\n{}\n", platform.archives[0].download.sha256, checksum::sha256_of(b"not duckdb")),
        )
        .unwrap();
        assert!(is_verified(platform, &library));
    }
}
