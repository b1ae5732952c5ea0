//! Tests 200 concurrent callers: each gets an answer or a refusal with its reason, and none waits forever.

use std::collections::BTreeMap;

use super::*;

/// Returns the outcomes of concurrent calls, counted by the words of the message before the function's name.
async fn at_once(stage: Stage, callers: i64, user: impl Fn(i64) -> &'static str) -> BTreeMap<String, usize> {
    let stage = Arc::new(stage);
    let asking: Vec<_> = (0..callers)
        .map(|number| {
            let (stage, input) = (Arc::clone(&stage), CallInput { user: user(number), ..INPUT });
            tokio::spawn(async move { stage.call(input).await })
        })
        .collect();
    let mut outcomes = BTreeMap::new();
    for input in asking {
        let outcome = input.await.unwrap().err().unwrap_or_else(|| "answered".to_owned());
        let class = outcome.rsplit("component `").next().unwrap_or_default();
        let class = class.split(" in `").next().unwrap_or_default().split(" and is let").next().unwrap_or_default();
        *outcomes.entry(class.trim_end_matches(',').to_owned()).or_default() += 1;
    }
    outcomes
}

/// Returns a different name for each number. The name is leaked, so it lives as long as the tests run.
fn own_name(number: i64) -> &'static str {
    format!("user-{number}").leak()
}

fn of_words(outcomes: &BTreeMap<String, usize>, words: &str) -> usize {
    outcomes.iter().filter(|(class, _)| class.contains(words)).map(|(_, count)| count).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_of_an_endless_loop_get_a_fault() {
    for (role, id) in ROLES {
        let guest = RoleGuest::new(role, id).with(function_of(role), ENDLESS);
        for user in [(|_| "ada") as fn(i64) -> &'static str, own_name] {
            let stage = Stage::of(&guest, |settings| settings.plugins[0].limits.fuel = Some(100_000));
            let outcomes = at_once(stage, 200, user).await;
            let (limited, open) =
                (of_words(&outcomes, "reached its limit of fuel"), of_words(&outcomes, "circuit breaker is open"));
            let full = of_words(&outcomes, "too many guests");
            // Calls that were running when the fifth call failed reach the limit too.
            assert!((5..=16).contains(&limited), "{role}: {outcomes:?}");
            assert_eq!(limited + open + full, 200, "{role}: {outcomes:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_of_a_working_function_get_responses() {
    for (role, answer) in [(PluginRole::Governance, "(i32.const 4096)"), (PluginRole::Check, "(i32.const 4096)")] {
        let outcomes = at_once(Stage::of_body(role, "", answer), 200, own_name).await;
        let refused = of_words(&outcomes, "too many guests");
        let answered = of_words(&outcomes, "answered");
        assert!(answered > 0 && answered + refused == 200, "{role}: {outcomes:?}");
    }
}
