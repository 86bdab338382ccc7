"""Systems at equal cost: the value of a network's own knob at which it executes as many FLOPs as another one.

Found on validation data (`workflows.validation_data`), never on the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from temporalzoom.datasets.samples import Split
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_total
from temporalzoom.models import AdaptiveDepth, RoutedZoom
from temporalzoom.workflows.evaluate import sample_outputs

TOLERANCE = 0.05  # what counts as matched, as a share of the cost asked for
ENOUGH = 0.01  # where the search ends
STEPS = 32  # of the search, at most
PATIENCE = 12  # steps without a cost that was not seen before: there is none in between


@dataclass(frozen=True)
class Knob:
    """What a trained network is made cheaper or dearer with: an attribute. rises: cost rises with it."""

    name: str
    low: float
    high: float
    rises: bool

    def read(self, model: nn.Module) -> float:
        return float(getattr(model, self.name) or 0.0)

    def set(self, model: nn.Module, value: float) -> None:
        held = getattr(model, self.name)
        if isinstance(held, Tensor):
            held.fill_(value)
        else:
            setattr(model, self.name, value)


@dataclass(frozen=True)
class Match:
    """knob: its name, None where a network has none; value: of the knob; flops: executed on the validation data, and
    asked for."""

    knob: str | None
    value: float | None
    flops: float
    target: float

    @property
    def within(self) -> bool:
        return abs(self.flops / self.target - 1) <= TOLERANCE


BUDGET = Knob("budget", 0.0, 1.0, rises=True)
KEEP = Knob("keep", 0.0, 1.0, rises=True)
# Of the depth predictor's logits, which are gains in units of their price.
THRESHOLD = Knob("threshold", -12.0, 12.0, rises=False)

# Of a classifier over depths: what a layer costs it, in logits.
PRICE = Knob("threshold", -30.0, 30.0, rises=False)
# Of exits: how sure they must be, in logits.
MARGIN = Knob("margin", -0.5, 25.0, rises=True)


def knob_of(model: nn.Module) -> Knob | None:
    """None: what a network costs is fixed by its design."""
    if isinstance(model, RoutedZoom):
        return {"exit": MARGIN, "calibrated-exit": MARGIN, "mixture": BUDGET}.get(model.router, PRICE)
    if not isinstance(model, AdaptiveDepth) or model.allocation == "none":
        return None
    if model.allocation != "tau":
        return BUDGET
    if model.depth is None:
        return None if model.importance is None else KEEP
    return THRESHOLD if model.tau_min is None and model.budget is None else BUDGET


def executed(localizer: Localizer, split: Split) -> float:
    """FLOPs of a network on whole recordings, one after the other."""
    return float(count_total(lambda: [sample_outputs(localizer, sample) for sample in split.samples]))


def match(localizer: Localizer, split: Split, target: float) -> Match:
    """Set the knob of a network, where it has one, so that it executes `target` FLOPs on `split`, or as near as it can.

    It stays set.
    """
    model = localizer.model
    knob = knob_of(model)
    if knob is None:
        return Match(None, None, executed(localizer, split), target)

    def cost(value: float) -> float:
        knob.set(model, value)
        return executed(localizer, split)

    value, flops = search(cost, knob, target)
    knob.set(model, value)
    return Match(knob.name, value, flops, target)


def search(cost: Callable[[float], float], knob: Knob, target: float) -> tuple[float, float]:
    """The value of a knob whose cost is nearest to the target, and that cost. Cost is monotone: it is approached in
    turn along a straight line, which is right for a share, and by halving, which is right for any threshold."""
    low, high = (knob.low, knob.high) if knob.rises else (knob.high, knob.low)  # from cheap to dear
    least, most = cost(low), cost(high)
    if target <= least or target >= most:  # it gets no nearer
        return (low, least) if target <= least else (high, most)
    best = min((target - least, low, least), (most - target, high, most))
    stuck = 0
    for turn in range(STEPS):
        value = low + (high - low) * ((target - least) / (most - least) if turn % 2 == 0 else 0.5)
        spent = cost(value)
        best = min(best, (abs(spent - target), value, spent))
        stuck = stuck + 1 if spent in (least, most) else 0
        if best[0] <= ENOUGH * target or stuck >= PATIENCE:
            break
        if spent < target:
            low, least = value, spent
        else:
            high, most = value, spent
    return best[1], best[2]
