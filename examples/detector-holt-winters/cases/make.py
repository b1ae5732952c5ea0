"""Writes the cases of the Holt-Winters detector (pip install statsmodels).

A season of 4 keeps the files short. NumPy computes the numbers; the script checks that they agree with those of
statsmodels where both define a number the same way. A case's model is the final state of the smoothing. The native
tests train on the same histories and must arrive at that state.
"""

import json
import pathlib
import struct

import numpy as np
from statsmodels.tsa.holtwinters import ExponentialSmoothing

ALPHA, BETA, GAMMA, SEASON, SENSITIVITY = 0.3, 0.1, 0.2, 4, 3.0
HERE = pathlib.Path(__file__).parent


def series(seed: int, length: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    time = np.arange(length)
    return np.round(50 + 0.5 * time + 10 * np.sin(2 * np.pi * time / SEASON) + random.normal(0, 1, length), 3)


def fit(history: np.ndarray):
    first, second = history[:SEASON], history[SEASON : 2 * SEASON]
    model = ExponentialSmoothing(
        history,
        trend="add",
        seasonal="add",
        seasonal_periods=SEASON,
        initialization_method="known",
        initial_level=first.mean(),
        initial_trend=(second.mean() - first.mean()) / SEASON,
        initial_seasonal=first - first.mean(),
    )
    return model.fit(smoothing_level=ALPHA, smoothing_trend=BETA, smoothing_seasonal=GAMMA, optimized=False)


def smooth(history: np.ndarray):
    """Applies the textbook's equations (Hyndman and Athanasopoulos, 8.3) point by point."""
    first, second = history[:SEASON], history[SEASON : 2 * SEASON]
    level, trend = first.mean(), (second.mean() - first.mean()) / SEASON
    season, fitted = list(first - first.mean()), []
    for value in history:
        fitted.append(level + trend + season[0])
        new = ALPHA * (value - season[0]) + (1 - ALPHA) * (level + trend)
        season.append(GAMMA * (value - level - trend) + (1 - GAMMA) * season.pop(0))
        level, trend = new, BETA * (new - level) + (1 - BETA) * trend
    return level, trend, season, np.array(fitted)


def model_bytes(level: float, trend: float, deviation: float, season: list[float]) -> list[int]:
    """Returns level, trend, deviation and season as little-endian doubles."""
    numbers = [level, trend, deviation, *season]
    return list(struct.pack(f"<{len(numbers)}d", *numbers))


def case(seed: int, length: int) -> dict:
    history = series(seed, length)
    level, trend, season, fitted = smooth(history)
    steps = np.arange(1, 7)
    forecast = np.array([level + step * trend + season[(step - 1) % SEASON] for step in steps])
    theirs = fit(history)
    assert np.allclose(fitted, theirs.fittedvalues, rtol=1e-12)
    # statsmodels ignores the seasonal value of the last point, so each SEASON-th forecast repeats an older season.
    comparable = steps % SEASON != 0
    assert np.allclose(forecast[comparable], theirs.forecast(6)[comparable], rtol=1e-12)
    deviation = float(np.sqrt(np.mean((history - fitted) ** 2)))
    points = np.round(forecast, 2)
    points[2] += 8 * deviation
    allowed = SENSITIVITY * deviation
    judgement = {
        "expected": forecast.tolist(),
        "lower-bound": (forecast - allowed).tolist(),
        "upper-bound": (forecast + allowed).tolist(),
        "raw": (np.abs(points - forecast) / allowed).tolist(),
        "scores": np.minimum(np.abs(points - forecast) / allowed / 2, 1).tolist(),
        "anomalous": [False, False, True, False, False, False],
    }
    parameters = {
        "sensitivity": SENSITIVITY,
        "training-size": length,
        "seasonality": SEASON,
        "extra": [["alpha", str(ALPHA)], ["beta", str(BETA)], ["gamma", str(GAMMA)]],
    }
    shared = {"kind": "holt_winters", "history": {"series": [history.tolist()]}, "p": parameters}
    models = [model_bytes(level, trend, deviation, season)]
    about = f"NumPy, compared with statsmodels' ExponentialSmoothing: {length} points, a season of {SEASON}"
    detect = {**shared, "models": models, "points": {"series": [points.tolist()]}}
    # The detector adds the numbers in another order than NumPy, so the last digits differ, mostly in raw distances.
    return {"about": about, "call": "detect", "args": detect, "expect": {"ok": judgement}, "tolerance": 1e-6}


def main() -> None:
    for seed, length in [(1, 24), (2, 40), (3, 17)]:
        text = json.dumps(case(seed, length), indent=1)
        (HERE / f"wave-{length}-points.json").write_text(text + "\n")


main()
