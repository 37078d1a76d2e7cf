"""Program of the helper that fits forecast models: exponential smoothing (ETS), chosen by AICc and backtested."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ba_tui.core.values import frozen
from ba_tui.processes.serving import HandlerFailed, RequestCancelled, WorkerChannel, WorkerRequest

ORIGINS = 3
"""Points in the past from which forecasts are tested."""
LEAST = 8
"""Least values to fit a model."""
LONGEST_SEASON = 24
"""Longer seasons take minutes to fit."""
ROUNDS = 100


@frozen
class ModelShape:
    """A model: ``trend``, ``damped`` or not, and a pattern that repeats after ``season`` values, which naive forecasts
    use too."""

    trend: bool
    damped: bool
    seasonal: bool
    season: int

    @property
    def name(self) -> str:
        """Return the usual name: error, trend, season."""
        return f"ETS(A,{'Ad' if self.damped else 'A' if self.trend else 'N'},{'A' if self.seasonal else 'N'})"


def main(channel: WorkerChannel) -> None:
    """Serve requests until the client disconnects."""
    channel.serve({"forecast": _forecast}, 1)


def _forecast(request: WorkerRequest) -> object:
    """Return the next values with their interval, and the mean absolute error of the model and of the best naive
    forecast."""
    given: Any = request.payload
    values: list[float] = given["values"]
    season, ahead = given["season"], given["ahead"]
    try:
        import numpy  # noqa: PLC0415 - an extra
        import statsmodels  # noqa: PLC0415
        from statsmodels.tools.sm_exceptions import ConvergenceWarning  # noqa: PLC0415
    except ImportError as error:
        raise HandlerFailed("missing", str(error)) from error
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        # A model that does not suit the series fits badly, and another one is chosen.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        steps = min(ahead, max(1, (len(values) - LEAST) // ORIGINS))
        # Chosen from the data before the tested periods only.
        shape = _chosen(request, values[: len(values) - ORIGINS * steps], season)
        errors, tested = _backtest(request, values, shape, steps)
        request.progress({"doing": "fitting a model", "share": 0.9})
        fitted = _fitted(values, shape)
        found = fitted.get_prediction(start=len(values), end=len(values) + ahead - 1)
        frame = found.summary_frame(alpha=1 - given["level"])
    return {
        "values": [float(value) for value in frame["mean"]],
        "low": [float(value) for value in frame["pi_lower"]],
        "high": [float(value) for value in frame["pi_upper"]],
        "model": shape.name,
        "engine": f"statsmodels {statsmodels.__version__}",
        "error": errors["model"],
        "naive": min(errors["last"], errors["season"]),
        "baseline": "last" if errors["last"] <= errors["season"] else "season",
        "tested": tested,
    }


def _chosen(request: WorkerRequest, values: Sequence[float], season: int) -> ModelShape:
    """Return the model with the lowest AICc for ``values``."""
    seasonal = (False, True) if 1 < season <= LONGEST_SEASON and len(values) >= 2 * season + 2 else (False,)
    shapes = [
        ModelShape(trend, damped, each, season)
        for (trend, damped), each in product(((False, False), (True, False), (True, True)), seasonal)
    ]
    scores: dict[ModelShape, float] = {}
    for place, shape in enumerate(shapes):
        _check(request, "choosing a model", 0.6 * place / len(shapes))
        try:
            scores[shape] = float(_fitted(values, shape).aicc)
        except (ValueError, ArithmeticError):
            # Numpy's LinAlgError is a ValueError too.
            continue
    if not scores:
        raise HandlerFailed("unfit", "No model could be fitted to the series.")
    return min(scores, key=scores.__getitem__)


def _backtest(
    request: WorkerRequest, values: Sequence[float], shape: ModelShape, steps: int
) -> tuple[dict[str, float], int]:
    """Return the mean absolute errors of forecasts of the past, and how many values were tested."""
    season = shape.season
    ways: dict[str, Callable[[Sequence[float]], Sequence[float]]] = {
        "model": lambda known: list(_fitted(known, shape).forecast(steps)),
        "last": lambda known: [known[-1]] * steps,
        "season": lambda known: [known[-1 if season > len(known) else at % season - season] for at in range(steps)],
    }
    off = dict.fromkeys(ways, 0.0)
    tested = 0
    for origin in range(ORIGINS, 0, -1):
        _check(request, "testing forecasts of the past", 0.9 - 0.1 * origin)
        known, later = values[: len(values) - origin * steps], values[len(values) - origin * steps :][:steps]
        for name, way in ways.items():
            off[name] += sum(abs(float(guess) - value) for guess, value in zip(way(known), later, strict=True))
        tested += len(later)
    return {name: total / tested for name, total in off.items()}, tested


def _fitted(values: Sequence[float], shape: ModelShape) -> Any:
    import pandas  # noqa: PLC0415 - comes with statsmodels
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel  # noqa: PLC0415

    model: Any = ETSModel(
        pandas.Series(values, dtype=float),
        error="add",
        trend="add" if shape.trend else None,
        damped_trend=shape.damped,
        seasonal="add" if shape.seasonal else None,
        seasonal_periods=shape.season if shape.seasonal else None,
    )
    return model.fit(disp=False, maxiter=ROUNDS)


def _check(request: WorkerRequest, doing: str, share: float) -> None:
    if request.cancelled.is_set():
        raise RequestCancelled
    request.progress({"doing": doing, "share": round(share, 2)})
