"""From tokens to raw outputs: class logits, box offsets, boundary distances.

`Heads` reads every token on its own, `ConvolutionHeads` a token and its neighbours. Both are applied to the levels of
sequences, and again to the few tokens that went `deeper`: without neighbours, but with their shallow outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from temporalzoom.bdr import DistanceHead
from temporalzoom.models.level_heads import LevelHeads, Reading, all_points
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.pyramid import Level, prior_logit

HeadForm = Literal["mlp", "convolution"]


@dataclass(frozen=True)
class LevelOptions:
    """levels: how many; finest: the longest offset of the first; distances_on_all: training looks at every level's."""

    levels: int = 1
    finest: float = 4.0
    distances_on_all: bool = False


def mlp(
    width: int, bias: list[float], layers: int = 3, spread: float = 0.01, hidden_width: int | None = None
) -> nn.Sequential:
    """`layers` linear layers with GELU between them; outputs, one per bias, start near the given biases."""
    parts: list[nn.Module] = []
    # A full-width head at every position would cost a sixth of a transformer layer each.
    hidden_width = hidden_width or width // 2
    for before in [width, *[hidden_width] * (layers - 2)]:
        hidden = nn.Linear(before, hidden_width)
        nn.init.xavier_uniform_(hidden.weight)
        parts += [hidden, nn.GELU()]
    last = nn.Linear(hidden_width, len(bias))
    nn.init.normal_(last.weight, std=spread)
    with torch.no_grad():
        last.bias.copy_(torch.tensor(bias))
    return nn.Sequential(*parts, last)


def distance_head(width: int, channels: int | None, hidden_width: int | None = None) -> DistanceHead | None:
    return DistanceHead(width, channels, hidden_width or width // 2, variance=True) if channels else None


def boundary_head(width: int, channels: int | None) -> nn.Sequential | None:
    """Logits that a boundary is at a position: what BDR is compared with."""
    return mlp(width, [prior_logit()] * channels) if channels else None


class LevelledHeads(nn.Module):
    """What both forms share: how many levels there are, and what a reading of all of them consists of."""

    distance: DistanceHead | None
    boundary: nn.Module | None

    def _read_boundaries(self, outputs: Outputs, tokens: Tensor) -> None:
        """Adds what is predicted about boundaries at each of the tokens (..., D)."""
        if self.distance is not None:
            outputs.distances, outputs.distance_log_variance = self.distance(tokens)
        if self.boundary is not None:
            outputs.boundary_logits = self.boundary(tokens)

    def __init__(self, options: LevelOptions) -> None:
        super().__init__()
        self.options, self.levels = options, options.levels
        self.logit_norm: nn.LayerNorm | None = None

    def normalize_logits(self, classes: int) -> None:
        """From now on `normalized` does it. The bias is initialized as that of plain logits, which it replaces."""
        self.logit_norm = nn.LayerNorm(classes)
        nn.init.constant_(self.logit_norm.bias, prior_logit())

    def normalized(self, outputs: Outputs) -> Outputs:
        """The same outputs with layer-normalized logits, if that was asked for."""
        return outputs if self.logit_norm is None else replace(outputs, logits=self.logit_norm(outputs.logits))

    def deeper(self, tokens: Tensor, before: Outputs) -> Outputs:
        """Outputs of tokens (..., D) of the deep path; before: their shallow ones."""
        # By a call, as all work of the heads: what a part of a network costs is counted from call to return.
        return self((), deep=(tokens, before)).finest

    def _reading(self, finest: Outputs, coarser: Outputs, above: Sequence[Level], mask: Tensor) -> Reading:
        """above: the coarser levels; mask: (B, T)."""
        if self.training and self.options.distances_on_all and self.distance is not None and above:
            coarser.distances = torch.cat([self.distance(level.tokens)[0] for level in above], 1)
        return Reading(finest, coarser, all_points(mask, self.levels, self.options.finest))


class Heads(LevelledHeads):
    """MLPs at every position: classes, box, distance (optional); narrow convolutions on coarser levels, if any."""

    reach = 0  # how many positions to either side are read

    def __init__(
        self,
        width: int,
        classes: int,
        distance_channels: int | None,
        options: LevelOptions,
        prior: float = 0.01,
        head_width: int | None = None,
        boundary_channels: int | None = None,
    ) -> None:
        super().__init__(options)
        self.norm = nn.LayerNorm(width)
        self.classes = mlp(width, [prior_logit(prior)] * classes, hidden_width=head_width)  # instances are rare
        # Lengths span two orders of magnitude: the box head predicts the logarithm of the offsets, from about 7
        # positions on, and the logarithm of their variance, from "off by several positions" on. With several levels,
        # this is the one of the shortest instances.
        offsets = [2.0, 2.0, 4.0, 4.0] if options.levels == 1 else [0.7, 0.7, 1.0, 1.0]
        self.box = mlp(width, offsets, hidden_width=head_width)
        self.distance = distance_head(width, distance_channels, head_width)
        self.boundary = boundary_head(width, boundary_channels)
        several = options.levels > 1
        self.coarse = LevelHeads(width, classes, options.levels, width // 2, first=1) if several else None

    def forward(self, levels: Sequence[Level], deep: tuple[Tensor, Outputs] | None = None) -> Reading:
        """levels: the finest, (B, T, D), first. deep: see `deeper`."""
        if deep is not None:
            return Reading(self._deeper(*deep))
        finest = self._each(levels[0].tokens)
        if self.coarse is None:
            return Reading(finest)
        coarser = self.coarse.normed(levels)
        return self._reading(finest, self.coarse(coarser), coarser, levels[0].mask)

    def _deeper(self, tokens: Tensor, before: Outputs) -> Outputs:
        """Of tokens (..., D) of the deep path, read as any others: their shallow outputs `before` are not used."""
        return self._each(tokens)

    def _each(self, tokens: Tensor) -> Outputs:
        tokens = self.norm(tokens)
        box = self.box(tokens)
        offsets = torch.exp(box[..., :2].clamp(max=10.0))
        outputs = Outputs(self.classes(tokens), offsets, box[..., 2:])
        self._read_boundaries(outputs, tokens)
        return outputs


class ConvolutionHeads(LevelledHeads):
    """Convolutions that all levels share, the finest included, predict classes and boxes; an MLP predicts distances.

    A token of the deep path corrects its shallow outputs: it adds to logits and multiplies offsets. zooms: there will
    be such tokens.
    """

    reach = 3

    def __init__(
        self,
        width: int,
        classes: int,
        distance_channels: int | None,
        options: LevelOptions,
        zooms: bool,
        boundary_channels: int | None = None,
    ) -> None:
        super().__init__(options)
        self.all_levels = LevelHeads(width, classes, options.levels, width, first=0)
        self.distance = distance_head(width, distance_channels)
        self.boundary = boundary_head(width, boundary_channels)
        # Initialized to zero: before training, depth corrects nothing.
        self.norm = nn.LayerNorm(width) if zooms else None
        self.classes = mlp(width, [0.0] * classes, spread=0.0) if zooms else None
        self.box = mlp(width, [0.0] * 4, spread=0.0) if zooms else None

    def forward(self, levels: Sequence[Level], deep: tuple[Tensor, Outputs] | None = None) -> Reading:
        """levels: the finest, (B, T, D), first. deep: see `deeper`."""
        if deep is not None:
            return Reading(self._deeper(*deep))
        levels = self.all_levels.normed(levels)
        outputs, length = self.all_levels(levels), levels[0].tokens.shape[1]
        finest = outputs.map(lambda x: x[:, :length])
        self._read_boundaries(finest, levels[0].tokens)
        if self.levels == 1:
            return Reading(finest)
        return self._reading(finest, outputs.map(lambda x: x[:, length:]), levels[1:], levels[0].mask)

    def _deeper(self, tokens: Tensor, before: Outputs) -> Outputs:
        """Of tokens (..., D) of the deep path: their shallow outputs `before`, corrected."""
        assert self.norm is not None and self.classes is not None and self.box is not None
        tokens = self.norm(tokens)
        outputs = corrected(tokens, before, self.classes, self.box, self.distance)
        if self.boundary is not None:
            outputs.boundary_logits = self.boundary(tokens)
        return outputs


class DetectorHeads(LevelledHeads):
    """Beside the heads of a detector that has its own: distances, and the corrections of tokens of the deep path."""

    def __init__(self, width: int, classes: int, distance_channels: int | None, options: LevelOptions) -> None:
        super().__init__(options)
        self.distance = distance_head(width, distance_channels)
        # As those of `ConvolutionHeads`; a detector predicts no variance of its boxes.
        self.norm = nn.LayerNorm(width)
        self.classes = mlp(width, [0.0] * classes, spread=0.0)
        self.box = mlp(width, [0.0] * 2, spread=0.0)

    def forward(
        self, levels: Sequence[Level], found: Outputs | None = None, deep: tuple[Tensor, Outputs] | None = None
    ) -> Reading:
        """levels: the detector's; found: its logits and offsets at all points, to which distances are added. deep: see
        `deeper`."""
        if deep is not None:
            return Reading(self._deeper(*deep))
        assert found is not None
        length = levels[0].tokens.shape[1]
        finest, coarser = found.map(lambda x: x[:, :length]), found.map(lambda x: x[:, length:])
        if self.distance is not None:
            finest.distances, finest.distance_log_variance = self.distance(levels[0].tokens)
        return self._reading(finest, coarser, levels[1:], levels[0].mask)

    def _deeper(self, tokens: Tensor, before: Outputs) -> Outputs:
        """As that of `ConvolutionHeads`."""
        return corrected(self.norm(tokens), before, self.classes, self.box, self.distance)


def corrected(
    tokens: Tensor, before: Outputs, classes: nn.Module, box: nn.Module, distance: DistanceHead | None
) -> Outputs:
    """The outputs `before` of tokens (..., D): logits are added to, offsets multiplied, distances predicted anew.

    Offsets that depend on the class, (..., C, 2), are multiplied alike for all classes: only the true class of a
    position has a loss, so that factors of its own would stay untrained for a class that is rare.
    """
    corrections = box(tokens)
    factors, variance = torch.exp(corrections[..., :2].clamp(-5.0, 5.0)), before.offset_log_variance
    outputs = Outputs(
        before.logits + classes(tokens),
        before.offsets * (factors if before.offsets.ndim == factors.ndim else factors.unsqueeze(-2)),
        None if variance is None else variance + corrections[..., 2:],
    )
    if distance is not None:
        outputs.distances, outputs.distance_log_variance = distance(tokens)
    return outputs


def build_heads(
    form: HeadForm,
    width: int,
    classes: int,
    distance_channels: int | None,
    options: LevelOptions,
    zooms: bool = False,
    head_width: int | None = None,
    boundary_channels: int | None = None,
) -> Heads | ConvolutionHeads:
    """zooms: some tokens will go deeper. head_width: hidden width of the mlp heads, default half of `width`."""
    if form == "mlp":
        return Heads(
            width, classes, distance_channels, options, head_width=head_width, boundary_channels=boundary_channels
        )
    return ConvolutionHeads(width, classes, distance_channels, options, zooms, boundary_channels)
