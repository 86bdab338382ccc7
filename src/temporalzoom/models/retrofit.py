"""BDR and adaptive depth on a detector of the field, its architecture untouched: a distance head on the features that
its heads see, and deep layers where they are expected to correct what these say."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from temporalzoom.bdr import DistanceHead
from temporalzoom.models.adaptive import AdaptiveDepth, DepthOptions
from temporalzoom.models.heads import DetectorHeads, LevelOptions
from temporalzoom.models.layers import Regularization
from temporalzoom.models.level_heads import Reading
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.pyramid import Level, PyramidDetector

# Of the deep layers: as found for `tzn`, whatever the detector's own layers have.
REGULARIZATION = Regularization(drop_path=0.1, layer_scale=0.1)
# Options of `DepthOptions` that a retrofit has.
DEPTH_KEYS = ("deep_layers", "zoom", "share", "budget", "execution")


class WithDistances(nn.Module):
    """A pyramid detector, and the distances to the nearest boundaries at every position.

    all_levels: the same head also reads the coarser levels, in strides of each; only training looks at those.
    """

    def __init__(self, detector: PyramidDetector, channels: int, all_levels: bool = False) -> None:
        super().__init__()
        self.detector, self.all_levels = detector, all_levels
        self.distance = DistanceHead(detector.width, channels, detector.width // 2, variance=True)

    receptive_field = None

    def forward(self, features: Tensor, mask: Tensor) -> Outputs:
        """features: (B, T, F), mask: (B, T) -> Outputs with distances."""
        levels = self.detector.features(features, mask)
        outputs = self.detector.detect(levels)
        outputs.distances, outputs.distance_log_variance = self.distance(levels[0].tokens)
        if self.all_levels and self.training:
            assert outputs.distances is not None
            coarser = [self.distance(level.tokens)[0] for level in levels[1:]]
            outputs.level_distances = torch.cat([outputs.distances, *coarser], 1)
        return outputs


class DetectorTrunk(nn.Module):
    """A pyramid detector that hands out its levels too."""

    def __init__(self, detector: PyramidDetector) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, features: Tensor, mask: Tensor) -> tuple[list[Level], Outputs]:
        """features: (B, T, F), mask: (B, T) -> the levels, and logits and offsets at all their points."""
        levels = self.detector.features(features, mask)
        found = self.detector.detect(levels)
        return levels, Outputs(found.logits, found.offsets)


class ZoomedDetector(AdaptiveDepth):
    """A pyramid detector whose outputs at the finest level are corrected by deep layers where that is expected to pay.

    distance_channels: of BDR, None without. The detector is the shallow path, untouched: before training, depth changes
    none of its classes and boxes.
    """

    def __init__(
        self,
        detector: PyramidDetector,
        classes: int,
        heads: int,
        options: DepthOptions,
        distance_channels: int | None = None,
        all_levels: bool = False,
    ) -> None:
        super().__init__(detector.width, options)
        self.trunk = DetectorTrunk(detector)
        self.add_deep_path(heads, REGULARIZATION, options)
        levels = LevelOptions(detector.levels, detector.finest, all_levels)
        self.heads = DetectorHeads(detector.width, classes, distance_channels, levels)
        self.add_deciders(options)

    receptive_field = None

    @property
    def input_factor(self) -> Tensor | None:
        return self.trunk.detector.embedding.factor

    def read(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Reading]:
        levels, found = self.trunk(features, mask)
        tokens = levels[0].tokens
        return tokens, self.heads(levels, found)


def retrofitted(
    detector: type[PyramidDetector], input_width: int, classes: int, options: dict[str, Any]
) -> PyramidDetector | WithDistances | ZoomedDetector:
    """The detector itself, or with a distance head where the options ask for `distance_channels`, or with adaptive
    depth where they ask for `deep_layers`; the other options are the detector's own, and one that it does not know is
    an error."""
    own = dict(options)
    channels, all_levels = own.pop("distance_channels", None), own.pop("distances_on_all_levels", False)
    depth = DepthOptions(**({"deep_layers": 0} | {key: own.pop(key) for key in DEPTH_KEYS if key in own}))
    heads = own.get("heads", 4) if detector.attends else own.pop("heads", 4)
    built = detector(input_width, classes, **own)
    if depth.deep_layers:
        return ZoomedDetector(built, classes, heads, depth, channels, all_levels)
    return built if channels is None else WithDistances(built, channels, all_levels)
