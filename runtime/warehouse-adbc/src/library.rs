//! Loads the shared library of a driver, and reports each reason why it cannot be used.
//!
//! In: a path or a name. Out: a driver that accepts options. The file's header is read before the system's loader gets
//! it, so that a library of another platform has a clear message. A driver stays loaded until the process ends, because
//! the runtimes of some drivers do not survive their removal.

mod platform;

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use adbc_core::error::{Error, Status};
use adbc_core::options::AdbcVersion;
use adbc_driver_manager::ManagedDriver;
use adbc_driver_manager::search::DriverLibrary;

use crate::settings::{ConnectError, DriverPath};
use platform::Platform;

/// The symbol that every driver exports for driver managers.
const ENTRYPOINT: &str = "AdbcDriverInit";

/// A driver in the memory of this process.
#[derive(Debug, Clone)]
pub struct LoadedDriver {
    pub(crate) driver: ManagedDriver,
    /// The path of the library.
    pub path: String,
    /// The symbol of the function that initialized the driver.
    pub entrypoint: String,
    /// The version of ADBC that the driver supports: `1.1` or `1.0`.
    pub version: &'static str,
}

/// Loads a driver without connecting to a database.
///
/// # Errors
/// The library is missing, is not for this platform, does not export the symbol, or refuses both versions of ADBC.
pub fn load(driver: &DriverPath, entrypoint: Option<&str>) -> Result<LoadedDriver, ConnectError> {
    let file = match driver {
        DriverPath::File(path) => {
            check_header(path)?;
            // The loader would search for a name without a folder in its own folders.
            std::path::absolute(path).unwrap_or_else(|_| path.clone())
        }
        DriverPath::Name(name) => file_name(name),
    };
    let shown = driver.to_string();
    let library = DriverLibrary::load_library(&file)
        .map_err(|error| ConnectError::Load { driver: shown.clone(), reason: error.message })?;
    let symbol = entrypoint.unwrap_or(ENTRYPOINT);
    #[allow(unsafe_code, reason = "the symbol's address is compared with null and never used")]
    let is_exported = unsafe { library.get::<*const ()>(symbol.as_bytes()) }.is_ok();
    if !is_exported {
        return Err(ConnectError::Symbol { driver: shown, symbol: symbol.to_owned() });
    }
    let (driver, version) = initialize(&file, symbol)
        .map_err(|error| ConnectError::Version { driver: shown.clone(), reason: error.message })?;
    std::mem::forget(driver.clone());
    std::mem::forget(library);
    Ok(LoadedDriver { driver, path: shown, entrypoint: symbol.to_owned(), version })
}

/// Initializes a driver with the newest version of ADBC that it supports. Only version 1.1 can cancel statements.
fn initialize(file: &Path, symbol: &str) -> Result<(ManagedDriver, &'static str), Error> {
    let load = |version| ManagedDriver::load_dynamic_from_filename(file, Some(symbol.as_bytes()), version);
    match load(AdbcVersion::V110) {
        Ok(driver) => Ok((driver, "1.1")),
        Err(error) if error.status == Status::NotImplemented => Ok((load(AdbcVersion::V100)?, "1.0")),
        Err(error) => Err(error),
    }
}

/// Returns the file name of a library on this platform, such as `libadbc_driver_postgresql.so`.
fn file_name(name: &str) -> PathBuf {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    format!("{prefix}{name}{suffix}").into()
}

fn check_header(path: &Path) -> Result<(), ConnectError> {
    let shown = || path.display().to_string();
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => ConnectError::Missing(shown()),
        _ => ConnectError::Unreadable { driver: shown(), reason: error.to_string() },
    };
    let mut header = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(platform::HEADER_BYTES).read_to_end(&mut header).map_err(unreadable)?;
    let found = Platform::of_library(&header).ok_or_else(|| ConnectError::NotALibrary(shown()))?;
    let expected = Platform::of_this_program();
    if found.can_run_on(expected) {
        return Ok(());
    }
    Err(ConnectError::Platform { driver: shown(), found: found.to_string(), expected: expected.to_string() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn refused(contents: Option<&[u8]>) -> ConnectError {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libdriver.so");
        if let Some(contents) = contents {
            fs::write(&path, contents).unwrap();
        }
        load(&DriverPath::File(path), None).unwrap_err()
    }

    #[test]
    fn missing_file_is_named() {
        assert!(matches!(refused(None), ConnectError::Missing(_)));
    }

    #[test]
    fn other_files_are_not_libraries() {
        for contents in [&b""[..], b"\x7fELF", b"PK\x03\x04 a wheel", &[0; 4_096]] {
            assert!(matches!(refused(Some(contents)), ConnectError::NotALibrary(_)), "{contents:?}");
        }
    }

    #[test]
    fn library_of_another_platform_is_named() {
        let error = refused(Some(&platform::tests::windows_library()));
        assert!(matches!(&error, ConnectError::Platform { found, .. } if found == "Windows on x86_64"), "{error}");
    }

    #[test]
    fn library_that_ends_early_is_refused_by_the_loader() {
        let header = platform::tests::elf(std::env::consts::ARCH);
        if cfg!(target_os = "linux") {
            let error = refused(Some(&header));
            assert!(matches!(&error, ConnectError::Load { .. }), "{error}");
        }
    }

    #[test]
    fn unknown_name_is_refused_by_the_loader() {
        let error = load(&DriverPath::Name("terrane_no_such_driver".to_owned()), None).unwrap_err();
        assert!(matches!(&error, ConnectError::Load { driver, .. } if driver == "terrane_no_such_driver"), "{error}");
    }

    #[test]
    fn folder_is_not_a_driver() {
        let folder = tempfile::tempdir().unwrap();
        let error = load(&DriverPath::File(folder.path().to_owned()), None).unwrap_err();
        assert!(matches!(&error, ConnectError::Unreadable { .. }), "{error}");
    }
}
