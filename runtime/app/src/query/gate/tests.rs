//! Fairness, bounds and leaving, without time: a future runs only when a test polls it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::*;

type Entering = Pin<Box<dyn Future<Output = Result<Turn, Overloaded>> + Send>>;

fn gate(running: usize, queued: usize) -> GateSettings {
    GateSettings { running, queued, running_per_tenant: None, queued_per_tenant: None }
}

fn enter(gate: &Gate, tenant: &str) -> Entering {
    let (gate, tenant) = (gate.clone(), Arc::from(tenant));
    Box::pin(async move { gate.enter(Some(&tenant)).await })
}

fn poll(entering: &mut Entering) -> Poll<Result<Turn, Overloaded>> {
    entering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Takes a turn that is free.
fn take(gate: &Gate, tenant: &str) -> Turn {
    match poll(&mut enter(gate, tenant)) {
        Poll::Ready(Ok(turn)) => turn,
        other => panic!("no turn for {tenant}: {other:?}"),
    }
}

/// Joins the queue.
fn wait(gate: &Gate, tenant: &str) -> Entering {
    let mut entering = enter(gate, tenant);
    assert!(poll(&mut entering).is_pending(), "{tenant} did not have to wait");
    entering
}

fn is_refused(gate: &Gate, tenant: &str) -> bool {
    matches!(poll(&mut enter(gate, tenant)), Poll::Ready(Err(_)))
}

#[test]
fn tenants_take_turns_however_many_queries_each_sends() {
    let gate = Gate::new(gate(1, 100));
    let mut turn = Some(take(&gate, "big"));
    let mut waiting: VecDeque<(&str, Entering)> = (0..6).map(|_| ("big", wait(&gate, "big"))).collect();
    waiting.extend(["small", "small", "third"].map(|tenant| (tenant, wait(&gate, tenant))));
    let mut order = Vec::new();
    while !waiting.is_empty() {
        drop(turn.take());
        let mut heard = None;
        for (index, (tenant, entering)) in waiting.iter_mut().enumerate() {
            if let Poll::Ready(entered) = poll(entering) {
                assert!(heard.is_none(), "two have the one turn");
                heard = Some((index, *tenant));
                turn = Some(entered.unwrap());
            }
        }
        let (index, tenant) = heard.expect("a turn was lost");
        waiting.remove(index);
        order.push(tenant);
    }
    assert_eq!(order, ["big", "small", "third", "big", "small", "big", "big", "big", "big"]);
    drop(turn);
    assert!(gate.line().is_empty());
}

#[test]
fn the_queue_is_bounded_and_a_full_one_makes_place_for_those_who_have_less() {
    let gate = Gate::new(gate(1, 3));
    let turn = take(&gate, "a");
    let mut of_a: Vec<Entering> = (0..3).map(|_| wait(&gate, "a")).collect();
    assert!(is_refused(&gate, "a"));
    let mut of_b = wait(&gate, "b");
    let pushed_out = poll(&mut of_a[2]);
    assert!(matches!(pushed_out, Poll::Ready(Err(Overloaded { running: 1, .. }))), "{pushed_out:?}");
    assert!(poll(&mut of_a[0]).is_pending() && poll(&mut of_a[1]).is_pending());
    // Both would have as many then.
    assert!(is_refused(&gate, "b"));
    assert_eq!(gate.line().counts(), (1, 3));
    drop(turn);
    assert!(matches!(poll(&mut of_a[0]), Poll::Ready(Ok(_))), "the oldest of the first");
    assert!(matches!(poll(&mut of_b), Poll::Ready(Ok(_))), "its turn was dropped at once");
}

#[test]
fn a_tenant_has_bounds_of_its_own() {
    let settings = GateSettings { running_per_tenant: Some(1), queued_per_tenant: Some(1), ..gate(3, 10) };
    let gate = Gate::new(settings);
    let first = take(&gate, "a");
    let mut second = wait(&gate, "a");
    assert!(is_refused(&gate, "a"));
    let other = take(&gate, "b");
    let nobody = poll(
        &mut (Box::pin({
            let gate = gate.clone();
            async move { gate.enter(None).await }
        }) as Entering),
    );
    assert!(matches!(nobody, Poll::Ready(Ok(_))), "those without a tenant are one");
    drop(other);
    assert!(poll(&mut second).is_pending(), "a free turn is not for whoever has his share");
    drop(first);
    assert!(matches!(poll(&mut second), Poll::Ready(Ok(_))));
}

#[test]
fn no_place_to_wait_is_no_place() {
    let gate = Gate::new(gate(1, 0));
    let turn = take(&gate, "a");
    assert!(is_refused(&gate, "a") && is_refused(&gate, "b"));
    drop(turn);
    drop(take(&gate, "b"));
}

#[test]
fn whoever_goes_away_leaves_the_queue_or_passes_the_turn_on() {
    let gate = Gate::new(gate(1, 2));
    let turn = take(&gate, "a");
    let (gone, mut next) = (wait(&gate, "a"), wait(&gate, "b"));
    drop(gone);
    assert_eq!(gate.line().counts(), (1, 1));
    let chosen = wait(&gate, "c");
    drop(turn);
    // `b` was told and has not looked yet.
    assert_eq!(gate.line().counts(), (1, 1));
    let Poll::Ready(Ok(turn)) = poll(&mut next) else { panic!("b waits") };
    drop(turn);
    // `c` was told, and goes away without looking.
    drop(chosen);
    assert!(gate.line().is_empty());
    drop(take(&gate, "d"));
}

/// Whatever leaves, and whenever: the bounds hold at each step, and in the end every turn is there again.
#[test]
fn no_turn_is_lost_whoever_goes_away_and_when() {
    for seed in 1..200_u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % below as u64) as usize
        };
        let (running, queued) = (1 + draw(4), draw(8));
        let running_per_tenant = (draw(2) == 0).then(|| 1 + draw(3));
        let gate = Gate::new(GateSettings { running_per_tenant, ..gate(running, queued) });
        let (mut waiting, mut turns): (Vec<Entering>, Vec<Turn>) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            match draw(5) {
                0 | 1 => waiting.push(enter(&gate, ["a", "b", "c"][draw(3)])),
                2 if !waiting.is_empty() => drop(waiting.swap_remove(draw(waiting.len()))),
                3 if !turns.is_empty() => drop(turns.swap_remove(draw(turns.len()))),
                _ if !waiting.is_empty() => {
                    let index = draw(waiting.len());
                    if let Poll::Ready(entered) = poll(&mut waiting[index]) {
                        drop(waiting.swap_remove(index));
                        turns.extend(entered);
                    }
                }
                _ => {}
            }
            let (runs, waits) = gate.line().counts();
            assert!(runs <= running && waits <= queued && turns.len() <= runs, "seed {seed}");
        }
        drop(turns);
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain_mut(|entering| poll(entering).is_pending());
            assert!(waiting.len() < before, "seed {seed}: {before} wait for ever");
        }
        assert!(gate.line().is_empty(), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_turn_is_lost_between_threads() {
    let gate = Gate::new(GateSettings { running_per_tenant: Some(2), ..gate(3, 64) });
    let tasks: Vec<_> = (0..400_usize)
        .map(|number| {
            let gate = gate.clone();
            tokio::spawn(async move {
                let tenant = Arc::from(["a", "b", "c"][number % 3]);
                let entering = gate.enter(Some(&tenant));
                if let Ok(turn) = entering.await {
                    tokio::task::yield_now().await;
                    drop(turn);
                }
            })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        if number % 5 == 0 {
            task.abort();
        }
        let _ = task.await;
    }
    assert!(gate.line().is_empty());
}
