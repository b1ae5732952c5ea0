//! Tests that every first-party dialect passes the host's checks, and that the host and the SDK's conformance suite
//! write strings and names in the same way.

use std::collections::BTreeSet;
use std::path::Path;

use terrane_golden_tests::{checked, first_party_profiles};
use terrane_sdk::conformance;

#[test]
fn every_profile_is_accepted() {
    for profile in first_party_profiles() {
        let name = profile.name.clone();
        assert_eq!(checked(profile).name, name);
    }
}

#[test]
fn every_dialect_plugin_is_tested() {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    let folders = std::fs::read_dir(plugins)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_prefix("dialect-")?.to_owned()));
    let profiles = first_party_profiles().into_iter().map(|profile| profile.name);
    assert_eq!(folders.collect::<BTreeSet<_>>(), profiles.collect());
}

#[test]
fn host_and_suite_quote_strings_and_names_equally() {
    let hostile =
        ["it's", "a\\", "\\'", "'; SELECT 1 --", "line\nline", "${x}", "order", "a`b", "a\"b", "CamelCase", "plain"];
    for profile in first_party_profiles() {
        let host = checked(profile.clone());
        let cases = conformance::cases(&profile);
        for text in hostile {
            let (mut literal, mut name) = (String::new(), String::new());
            host.quoting.write_text(&mut literal, text);
            assert_eq!(conformance::text_literal(&profile, text), literal, "{}", profile.name);
            host.quoting.write_name(&mut name, text);
            assert_eq!(conformance::name(&profile, text), name, "{}", profile.name);
        }
        assert!(cases.len() > 700, "{}: {}", profile.name, cases.len());
    }
}
