"""BDR on a detector of the field, its architecture untouched: a distance head on the features that its heads see."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from temporalzoom.bdr import DistanceHead
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.pyramid import PyramidDetector


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


def with_distances(
    detector: type[PyramidDetector], input_width: int, classes: int, options: dict[str, Any]
) -> PyramidDetector | WithDistances:
    """The detector itself, or with a distance head where the options ask for `distance_channels`; the other options are
    the detector's own, and one that it does not know is an error."""
    own = dict(options)
    channels, all_levels = own.pop("distance_channels", None), own.pop("distances_on_all_levels", False)
    built = detector(input_width, classes, **own)
    return built if channels is None else WithDistances(built, channels, all_levels)
