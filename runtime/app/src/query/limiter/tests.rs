//! Tests of fairness, bounds and cancellation. No time passes: a future runs only when a test polls it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::*;

type Acquiring = Pin<Box<dyn Future<Output = Result<Permit, Overloaded>> + Send>>;

fn settings(running: usize, queued: usize) -> LimiterSettings {
    LimiterSettings { running, queued, running_per_tenant: None, queued_per_tenant: None }
}

fn acquire(limiter: &ConcurrencyLimiter, tenant: &str) -> Acquiring {
    let (limiter, tenant) = (limiter.clone(), Arc::from(tenant));
    Box::pin(async move { limiter.acquire(Some(&tenant)).await })
}

fn poll(acquiring: &mut Acquiring) -> Poll<Result<Permit, Overloaded>> {
    acquiring.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Acquires a free permit.
fn take(limiter: &ConcurrencyLimiter, tenant: &str) -> Permit {
    match poll(&mut acquire(limiter, tenant)) {
        Poll::Ready(Ok(permit)) => permit,
        other => panic!("no permit for {tenant}: {other:?}"),
    }
}

/// Joins the queue.
fn wait(limiter: &ConcurrencyLimiter, tenant: &str) -> Acquiring {
    let mut acquiring = acquire(limiter, tenant);
    assert!(poll(&mut acquiring).is_pending(), "{tenant} did not have to wait");
    acquiring
}

fn is_refused(limiter: &ConcurrencyLimiter, tenant: &str) -> bool {
    matches!(poll(&mut acquire(limiter, tenant)), Poll::Ready(Err(_)))
}

#[test]
fn permits_go_round_robin_among_tenants() {
    let limiter = ConcurrencyLimiter::new(settings(1, 100));
    let mut permit = Some(take(&limiter, "big"));
    let mut waiting: VecDeque<(&str, Acquiring)> = (0..6).map(|_| ("big", wait(&limiter, "big"))).collect();
    waiting.extend(["small", "small", "third"].map(|tenant| (tenant, wait(&limiter, tenant))));
    let mut order = Vec::new();
    while !waiting.is_empty() {
        drop(permit.take());
        let mut heard = None;
        for (index, (tenant, acquiring)) in waiting.iter_mut().enumerate() {
            if let Poll::Ready(entered) = poll(acquiring) {
                assert!(heard.is_none(), "two queries have the one permit");
                heard = Some((index, *tenant));
                permit = Some(entered.unwrap());
            }
        }
        let (index, tenant) = heard.expect("a permit was lost");
        waiting.remove(index);
        order.push(tenant);
    }
    assert_eq!(order, ["big", "small", "third", "big", "small", "big", "big", "big", "big"]);
    drop(permit);
    assert!(limiter.queue().is_empty());
}

#[test]
fn full_queue_evicts_the_tenant_with_most() {
    let limiter = ConcurrencyLimiter::new(settings(1, 3));
    let permit = take(&limiter, "a");
    let mut of_a: Vec<Acquiring> = (0..3).map(|_| wait(&limiter, "a")).collect();
    assert!(is_refused(&limiter, "a"));
    let mut of_b = wait(&limiter, "b");
    let pushed_out = poll(&mut of_a[2]);
    assert!(matches!(pushed_out, Poll::Ready(Err(Overloaded { running: 1, .. }))), "{pushed_out:?}");
    assert!(poll(&mut of_a[0]).is_pending() && poll(&mut of_a[1]).is_pending());
    // `a` has two waiting queries, and `b` has one. Another exchange would only swap these numbers, so the new query of
    // `b` is refused.
    assert!(is_refused(&limiter, "b"));
    assert_eq!(limiter.queue().counts(), (1, 3));
    drop(permit);
    assert!(matches!(poll(&mut of_a[0]), Poll::Ready(Ok(_))), "the oldest of the first");
    assert!(matches!(poll(&mut of_b), Poll::Ready(Ok(_))), "its permit was dropped at once");
}

#[test]
fn limits_per_tenant_are_enforced() {
    let bounds = LimiterSettings { running_per_tenant: Some(1), queued_per_tenant: Some(1), ..settings(3, 10) };
    let limiter = ConcurrencyLimiter::new(bounds);
    let first = take(&limiter, "a");
    let mut second = wait(&limiter, "a");
    assert!(is_refused(&limiter, "a"));
    let other = take(&limiter, "b");
    let without_tenant = poll(
        &mut (Box::pin({
            let limiter = limiter.clone();
            async move { limiter.acquire(None).await }
        }) as Acquiring),
    );
    assert!(matches!(without_tenant, Poll::Ready(Ok(_))), "queries without a tenant are those of one");
    drop(other);
    assert!(poll(&mut second).is_pending(), "the tenant has its share");
    drop(first);
    assert!(matches!(poll(&mut second), Poll::Ready(Ok(_))));
}

#[test]
fn empty_queue_rejects_at_once() {
    let limiter = ConcurrencyLimiter::new(settings(1, 0));
    let permit = take(&limiter, "a");
    assert!(is_refused(&limiter, "a") && is_refused(&limiter, "b"));
    drop(permit);
    drop(take(&limiter, "b"));
}

#[test]
fn dropped_waiter_leaves_or_passes_its_permit_on() {
    let limiter = ConcurrencyLimiter::new(settings(1, 2));
    let permit = take(&limiter, "a");
    let (gone, mut next) = (wait(&limiter, "a"), wait(&limiter, "b"));
    drop(gone);
    assert_eq!(limiter.queue().counts(), (1, 1));
    let chosen = wait(&limiter, "c");
    drop(permit);
    // The permit was sent to `b`, which was not polled yet.
    assert_eq!(limiter.queue().counts(), (1, 1));
    let Poll::Ready(Ok(permit)) = poll(&mut next) else { panic!("b waits") };
    drop(permit);
    // The permit was sent to `c`, which is dropped without being polled.
    drop(chosen);
    assert!(limiter.queue().is_empty());
    drop(take(&limiter, "d"));
}

/// Acquires and drops permits at random. The bounds hold at each step, and every permit returns in the end.
#[test]
fn dropped_waiters_lose_no_permit() {
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
        let limiter = ConcurrencyLimiter::new(LimiterSettings { running_per_tenant, ..settings(running, queued) });
        let (mut waiting, mut permits): (Vec<Acquiring>, Vec<Permit>) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            match draw(5) {
                0 | 1 => waiting.push(acquire(&limiter, ["a", "b", "c"][draw(3)])),
                2 if !waiting.is_empty() => drop(waiting.swap_remove(draw(waiting.len()))),
                3 if !permits.is_empty() => drop(permits.swap_remove(draw(permits.len()))),
                _ if !waiting.is_empty() => {
                    let index = draw(waiting.len());
                    if let Poll::Ready(entered) = poll(&mut waiting[index]) {
                        drop(waiting.swap_remove(index));
                        permits.extend(entered);
                    }
                }
                _ => {}
            }
            let (runs, waits) = limiter.queue().counts();
            assert!(runs <= running && waits <= queued && permits.len() <= runs, "seed {seed}");
        }
        drop(permits);
        while !waiting.is_empty() {
            let before = waiting.len();
            waiting.retain_mut(|acquiring| poll(acquiring).is_pending());
            assert!(waiting.len() < before, "seed {seed}: {before} queries wait for ever");
        }
        assert!(limiter.queue().is_empty(), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_threads_lose_no_permit() {
    let limiter = ConcurrencyLimiter::new(LimiterSettings { running_per_tenant: Some(2), ..settings(3, 64) });
    let tasks: Vec<_> = (0..400_usize)
        .map(|number| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let tenant = Arc::from(["a", "b", "c"][number % 3]);
                let acquiring = limiter.acquire(Some(&tenant));
                if let Ok(permit) = acquiring.await {
                    tokio::task::yield_now().await;
                    drop(permit);
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
    assert!(limiter.queue().is_empty());
}
