"""`temporalmaxer`: a pyramid by max pooling alone, no attention (Tang et al., TemporalMaxer, 2023)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from temporalzoom.models.pyramid import Level, OffsetHead, PyramidDetector, halved, max_pooled
from temporalzoom.models.registry import no_depth, register
from temporalzoom.models.retrofit import retrofitted


class MaxPooling(nn.Module):
    """A level -> the next, of half the positions."""

    def forward(self, level: Level) -> Level:
        return Level(max_pooled(level), halved(level.mask), 2 * level.stride)


class TemporalMaxer(PyramidDetector):
    """Every level is the one before, max-pooled."""

    def __init__(self, input_width: int, classes: int, *, levels: int = 6, head_layers: int = 3, **options: object):
        super().__init__(input_width, classes, levels=levels, head_layers=head_layers, **options)  # type: ignore
        self.layers = nn.ModuleList(MaxPooling() for _ in range(levels - 1))
        self.offset_head = OffsetHead(self.width, levels, head_layers)

    def read_offsets(self, level: Level, number: int) -> Tensor:
        return self.offset_head(level, number)


@register("temporalmaxer")
def build_temporalmaxer(depth: int | None, input_width: int, classes: int, /, **options: Any) -> nn.Module:
    no_depth("temporalmaxer", depth)
    return retrofitted(TemporalMaxer, input_width, classes, options)
