"""`tzn`, Temporal Zoom Network: a shallow transformer everywhere, a deep one only where it is worth its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from temporalzoom.models.adaptive import AdaptiveDepth, DepthOptions
from temporalzoom.models.coarse_to_fine import CoarseToFine
from temporalzoom.models.heads import HeadForm, LevelOptions, build_heads
from temporalzoom.models.inputs import Projection
from temporalzoom.models.layers import Encoder, Regularization, TokenLayout
from temporalzoom.models.level_heads import Reading


class TemporalZoom(AdaptiveDepth):
    """Adaptive depth on a shallow path of its own.

    depth_options: those of `DepthOptions`. The layers of both paths are of one kind: `heads`, `expansion`, dropout.
    """

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        width: int = 128,
        heads: int = 4,
        window: int | None = 9,
        dropout: float = 0.1,
        drop_path: float = 0.0,
        layer_scale: float | None = None,
        distance_channels: int | None = None,
        boundary_channels: int | None = None,
        standardize: bool = False,
        stem: Sequence[int] = (),
        stem_window: int | None = None,
        shallow_layers: int = 2,
        coarse_layers: int = 0,
        head: HeadForm = "mlp",
        head_width: int | None = None,
        levels: int = 1,
        finest: float = 4.0,
        distances_on_all_levels: bool = False,
        **depth_options: Any,
    ) -> None:
        depth = DepthOptions(**depth_options)
        if window is None:
            depth = replace(depth, deep_window=None)
        if depth.combine == "logits" and classes < 2:
            raise ValueError("tzn.combine: logits normalizes over the classes, and needs at least two of them")
        super().__init__(width, depth)
        self.window = window
        self.projection = Projection(input_width, width, standardize=standardize, stem=stem, stem_window=stem_window)
        regularization = Regularization(dropout, drop_path, layer_scale)
        self.shallow = Encoder(width, heads, shallow_layers, window, regularization, depth.expansion)
        self.levels = CoarseToFine(width, heads, levels, coarse_layers, regularization, depth.expansion)
        self.add_deep_path(heads, regularization, depth)
        options = LevelOptions(levels, finest, distances_on_all_levels)
        zooms = depth.allocation != "none"
        self.heads = build_heads(
            head,
            width,
            classes,
            distance_channels,
            options,
            zooms=zooms,
            head_width=head_width,
            boundary_channels=boundary_channels,
        )
        if depth.combine == "logits":
            self.heads.normalize_logits(classes)
        self.add_deciders(depth)

    @property
    def input_factor(self) -> Tensor | None:
        return self.projection.factor

    def read(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Reading]:
        tokens = self.projection(features, mask)
        if len(self.shallow.layers):
            tokens = self.shallow(tokens, TokenLayout.build(mask, self.window))
        levels = self.levels(tokens, mask)
        return levels[0].tokens, self.heads(levels)
