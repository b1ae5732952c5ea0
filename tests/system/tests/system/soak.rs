//! Runs a limited sample of `cargo xtask soak`. No attack may receive a 5xx or a secret, or end the process.

use terrane_system_tests::soak::{self, Settings, stage};

use crate::BINARY;

#[test]
fn random_requests_cause_no_crash_and_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let (server, credentials) = stage::start(BINARY, folder.path(), &[]).unwrap();
    let settings = Settings { requests: 1_500, seed: 20_131_101, clients: 8 };
    let report = soak::run(server.address, server.process(), &credentials, settings);
    assert!(report.faults.is_empty(), "{report}");
    assert_eq!(report.watched.failed_probes, 0, "{report}");
    // The attacks reached different parts of the server: some succeeded, and others were refused in several ways.
    for status in [200, 400, 401, 404, 405] {
        assert!(report.answers.contains_key(&Some(status)), "{report}");
    }
    assert_eq!(server.terminate().unwrap().0, Some(0));
}
