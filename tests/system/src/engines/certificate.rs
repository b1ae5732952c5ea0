//! A certificate authority, and a certificate for 127.0.0.1 that it signed.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::process::{give_to, run};
use super::{Missing, program};

/// The file with the certificate of the authority, for clients.
pub const AUTHORITY: &str = "authority.crt";
/// The file with the certificate of an authority that has signed no server's certificate.
pub const STRANGER: &str = "stranger.crt";
pub(super) const CERTIFICATE: &str = "server.crt";
pub(super) const KEY: &str = "server.key";

const FOLDERS: &[&str] = &["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

pub(super) fn missing() -> Option<Missing> {
    program(FOLDERS, "openssl").err()
}

/// Writes all certificates and keys into a folder. The server's own key belongs to `user`.
pub(super) fn write_for(user: &str, folder: &Path) -> Result<()> {
    write(folder)?;
    [CERTIFICATE, KEY].iter().try_for_each(|file| give_to(user, &folder.join(file)))
}

/// Writes all certificates and keys into a folder.
pub(super) fn write(folder: &Path) -> Result<()> {
    for (certificate, key) in [(AUTHORITY, "authority.key"), (STRANGER, "stranger.key")] {
        request(folder, certificate, key, &[&format!("/CN={certificate}")])?;
    }
    let for_this_machine = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"];
    let signed = ["/CN=localhost", "-CA", AUTHORITY, "-CAkey", "authority.key"];
    request(folder, CERTIFICATE, KEY, &[&signed[..], &for_this_machine].concat())
}

fn request(folder: &Path, certificate: &str, key: &str, subject_and_more: &[&str]) -> Result<()> {
    let openssl = program(FOLDERS, "openssl").map_err(|Missing(why)| anyhow::anyhow!(why))?;
    let mut command = Command::new(openssl);
    command.current_dir(folder).args(["req", "-x509", "-nodes", "-days", "2", "-newkey", "ec"]);
    command.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-out", certificate, "-keyout", key, "-subj"]);
    command.args(subject_and_more);
    run(command)
}
