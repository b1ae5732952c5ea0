"""Writes numpy.json: the numbers that NumPy and SciPy compute for a few samples.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy scipy
    /tmp/venv/bin/python make.py > numpy.json

The tests read the file; they need no Python. None stands for a value that is missing.
"""
import json

import numpy as np
from scipy import stats

random = np.random.default_rng(20130101)
SAMPLES = {
    "normal": (random.normal(100, 15, 100), random.normal(100, 30, 20)),
    "heavy_tails": (random.standard_cauchy(99), random.standard_cauchy(15)),
    "counts": (random.poisson(3, 60).astype(float), np.array([0.0, 3.0, 9.0, 40.0])),
    "large_offset": (1e6 + random.normal(0, 1, 50), 1e6 + np.array([-5.0, 0.0, 0.5, 5.0])),
    "holes": (np.where(random.random(80) < 0.2, np.nan, random.exponential(10, 80)), np.array([1.0, np.nan, 90.0])),
    "five": (np.array([1.0, 2.0, 3.0, 4.0, 100.0]), np.array([3.0, -50.0, 120.0])),
}
DEFAULTS = {"z_score": 2.5, "iqr": 1.5, "mad": 3.0, "seasonal": 3.0}
SEASON = 7


def judged(kind, history, points, sensitivity):
    known = history[~np.isnan(history)]
    if kind == "z_score":
        mean, unit = np.mean(known), np.std(known, ddof=0)
        raw, expected = (points - mean) / unit, np.full(len(points), mean)
        bounds = mean - sensitivity * unit, mean + sensitivity * unit
    elif kind == "iqr":
        q1, q2, q3 = np.quantile(known, [0.25, 0.5, 0.75], method="linear")
        unit = q3 - q1
        raw = np.where(points < q1, (points - q1) / unit, np.where(points > q3, (points - q3) / unit, 0.0))
        raw, expected = np.where(np.isnan(points), np.nan, raw), np.full(len(points), q2)
        bounds = q1 - sensitivity * unit, q3 + sensitivity * unit
    elif kind == "mad":
        median, mad = np.median(known), stats.median_abs_deviation(known)
        raw, expected = 0.6745 * (points - median) / mad, np.full(len(points), median)
        bounds = median - sensitivity * mad / 0.6745, median + sensitivity * mad / 0.6745
    else:
        at = np.arange(-len(history), len(points)) % SEASON
        past, now = at[: len(history)], at[len(history):]
        middle = np.array([np.nanmedian(history[past == place]) for place in range(SEASON)])
        mad = np.nanmedian(np.abs(history - middle[past]))
        expected = middle[now]
        raw = 0.6745 * (points - expected) / mad
        bounds = expected - sensitivity * mad / 0.6745, expected + sensitivity * mad / 0.6745
    low, high = (np.broadcast_to(bound, len(points)) for bound in bounds)
    scores = np.nan_to_num(np.clip(np.abs(raw) / (2 * sensitivity), 0, 1))
    return {"scores": scores, "raw": raw, "expected": expected, "lower_bound": low, "upper_bound": high}


def plain(values):
    return [None if np.isnan(value) else float(value) for value in values]


cases = []
for name, (history, points) in SAMPLES.items():
    for kind, default in DEFAULTS.items():
        if kind == "seasonal" and len(history) < 2 * SEASON:
            continue
        for sensitivity in (default, 1.0):
            answer = {key: plain(value) for key, value in judged(kind, history, points, sensitivity).items()}
            cases.append({"name": name, "kind": kind, "sensitivity": sensitivity, **answer})
samples = {name: {"history": plain(history), "points": plain(points)} for name, (history, points) in SAMPLES.items()}
lines = ",\n".join(json.dumps(case) for case in cases)
print(f'{{"season": {SEASON}, "samples": {json.dumps(samples)}, "cases": [\n{lines}\n]}}')
