"""`uniform-L`: the same L transformer layers at every position. What adaptive depth is measured against."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from temporalzoom.models.coarse_to_fine import CoarseToFine
from temporalzoom.models.heads import HeadForm, LevelOptions, build_heads
from temporalzoom.models.inputs import Projection
from temporalzoom.models.layers import Encoder, Regularization, TokenLayout
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.registry import register


class Uniform(nn.Module):
    """Projection, `depth` transformer layers, heads."""

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        depth: int,
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
        coarse_layers: int = 0,
        head: HeadForm = "mlp",
        levels: int = 1,
        finest: float = 4.0,
        distances_on_all_levels: bool = False,
    ) -> None:
        super().__init__()
        self.window = window
        self.projection = Projection(input_width, width, standardize=standardize, stem=stem, stem_window=stem_window)
        regularization = Regularization(dropout, drop_path, layer_scale)
        self.encoder = Encoder(width, heads, depth, window, regularization)
        self.levels = CoarseToFine(width, heads, levels, coarse_layers, regularization)
        options = LevelOptions(levels, finest, distances_on_all_levels)
        self.heads = build_heads(head, width, classes, distance_channels, options, boundary_channels=boundary_channels)

    def forward(self, features: Tensor, mask: Tensor) -> Outputs:
        """features: (B, T, F), mask: (B, T) -> Outputs."""
        layout = TokenLayout.build(mask, self.window)
        tokens = self.encoder(self.projection(features, mask), layout)
        reading = self.heads(self.levels(tokens, mask))
        return reading.joined(reading.finest)

    @property
    def receptive_field(self) -> int | None:
        """How many positions to either side can influence an output; None = all (global attention)."""
        if self.window is None or self.heads.levels > 1:
            return None
        return self.heads.reach + self.projection.reach + len(self.encoder.layers) * (self.window + 1)


@register("uniform")
def build_uniform(depth: int | None, input_width: int, classes: int, **options: object) -> Uniform:
    """`uniform-6` and so on; the number is the depth."""
    return Uniform(input_width, classes, depth=6 if depth is None else depth, **options)  # type: ignore[arg-type]
