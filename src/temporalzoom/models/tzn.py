"""`tzn`, Temporal Zoom Network: a shallow transformer everywhere, a deep one only where it is worth its cost.

What is written here is what runs. A position that was pruned, or whose depth is below `tau_min`, never enters a deep
layer: the active tokens of the whole batch are gathered into one packed sequence, run, and scattered back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from temporalzoom.models.deep import Surroundings, Zoom, ZoomLayer
from temporalzoom.models.depth import (
    DepthPredictor,
    LocalContext,
    Uncertainty,
    crossing_weight,
    dead_zone,
    gate,
    gradient_magnitude,
    hold,
    keep_highest,
    near_crossings,
    straight_through,
)
from temporalzoom.models.heads import HeadForm, LevelOptions, build_heads
from temporalzoom.models.inputs import Projection
from temporalzoom.models.layers import Encoder, Restraint, TokenLayout
from temporalzoom.models.outputs import Depth, Outputs
from temporalzoom.models.packing import Packed
from temporalzoom.models.registry import register

Combine = Literal["residual", "logits", "features", "layers"]
Hysteresis = Literal["none", "hold", "deadzone"]
Context = Surroundings | TokenLayout

# How quickly tau rises around its threshold.
SHARPNESS = 6.0
# How much the depth predictor hears from the shallow heads.
CLAIMS = 4


class TemporalZoom(nn.Module):
    """Shallow path, where-to-zoom, deep path, combination. Every part can be switched off.

    depth=False: no depth predictor, every kept position gets the whole deep path. uncertainty=False: no local context,
    sigma^2 is not predicted. pruning=False: no position is dropped for its importance. budget: if given, the share of
    positions with the highest tau that enter the deep path, instead of a threshold. protect: pruning may not drop so
    many positions to either side of a boundary of the shallow distance field. zoom: an active token sees the shallow
    tokens of so many positions to either side, and nothing of the other active ones; 0: it sees the other active ones
    up to `deep_window` positions away. explore: share of the other positions that are tried in training too; 1: all.
    supervision: `value`, tau learns from its own target only; `penalty`, from the detection loss through the mixture.
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
        standardize: bool = False,
        stem: Sequence[int] = (),
        stem_window: int | None = None,
        shallow_layers: int = 2,
        deep_layers: int = 7,
        deep_window: int | None = 32,
        expansion: int = 2,
        zoom: int = 24,
        combine: Combine = "residual",
        normalize_logits: bool = False,
        depth: bool = True,
        uncertainty: bool = True,
        context: LocalContext = "convolution",
        pruning: bool = True,
        keep: float = 0.8,
        protect: int = 3,
        tau_min: float | None = None,
        share: float = 0.1,
        warmup: int = 200,
        explore: float = 1.0,
        budget: float | None = None,
        hysteresis: Hysteresis = "hold",
        band: float = 0.05,
        supervision: Literal["value", "penalty"] = "value",
        execution: Literal["sparse", "dense"] = "sparse",
        checkpoint_deep: bool = False,
        head: HeadForm = "mlp",
        levels: int = 1,
        finest: float = 4.0,
        distances_on_all_levels: bool = False,
    ) -> None:
        super().__init__()
        self.window, self.deep_window = window, deep_window if window is not None else None
        self.combine, self.normalize_logits = combine, normalize_logits
        self.keep, self.protect = keep, protect
        self.tau_min, self.share, self.warmup, self.explore, self.budget = tau_min, share, warmup, explore, budget
        self.hysteresis, self.band = hysteresis, band
        self.supervision, self.execution, self.checkpoint_deep = supervision, execution, checkpoint_deep
        narrow = max(width // 4, 8)
        self.projection = Projection(input_width, width, standardize=standardize, stem=stem, stem_window=stem_window)
        restraint = Restraint(dropout, drop_path, layer_scale)
        packed = replace(restraint, per_token=True)
        self.shallow = Encoder(width, heads, shallow_layers, window, restraint, expansion)
        if zoom:
            self.deep = nn.ModuleList(ZoomLayer(width, heads, zoom, packed, expansion) for _ in range(deep_layers))
        else:
            self.deep = Encoder(width, heads, deep_layers, self.deep_window, packed, expansion).layers
        self.zoom = Zoom(width, heads, zoom) if zoom else None
        options = LevelOptions(levels, finest, distances_on_all_levels)
        self.heads = build_heads(head, width, classes, distance_channels, options, zooms=True)
        self.uncertainty = Uncertainty(width, narrow, context) if uncertainty else None
        self.depth = DepthPredictor(width, 1 + CLAIMS, 2 * narrow) if depth else None
        self.importance = gate(width, narrow, bias=2.0) if pruning else None
        self.register_buffer("threshold", torch.zeros(()))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, features: Tensor, mask: Tensor, boundaries: Tensor | None = None) -> Outputs:
        """features: (B, T, F), mask: (B, T); boundaries: (B, T), true ones to protect, for the oracle ablation."""
        tokens = self.projection(features, mask)
        if len(self.shallow.layers):
            tokens = self.shallow(tokens, TokenLayout.build(mask, self.window))
        # Long instances need no depth: coarse levels read the shallow tokens, and distances correct their ends.
        said = self.heads(tokens, mask)
        decided, factor = self._decide(features, tokens, mask, said.finest, boundaries)
        outputs = self._combine(tokens, mask, said.finest, decided, factor)
        outputs.depth = decided
        return said.joined(outputs)

    def _decide(
        self, features: Tensor, tokens: Tensor, mask: Tensor, shallow: Outputs, boundaries: Tensor | None
    ) -> tuple[Depth, Tensor]:
        """Who enters the deep path, and the factor (B, T) of what it adds: tau times the pruner's hard mask."""
        tokens = F.layer_norm(tokens, tokens.shape[-1:])
        # The gates learn where depth pays; they must not bend the tokens that everything else is made of.
        seen = tokens.detach()
        unknown = torch.zeros_like(mask, dtype=tokens.dtype)
        log_variance = unknown
        if self.uncertainty is not None:
            change = gradient_magnitude(features, mask, self.projection.factor)
            log_variance = self.uncertainty(tokens, change, mask)
        logits, tau = unknown, torch.ones_like(unknown)
        if self.depth is not None:
            heard = torch.stack((log_variance, *claims(shallow)), -1).detach()
            logits = self.depth(seen, heard, mask)
            tau = self._steady(self._tau(logits, mask))
            if self.supervision == "value":  # to the detection loss depth is free: it would ask for it everywhere
                tau = tau.detach()
        importance, kept, straight = torch.ones_like(unknown), mask, torch.ones_like(unknown)
        if self.importance is not None:
            # On top of the depth predictor's word: what is worth depth must not be pruned for want of training.
            importance_logits = self.importance(seen).squeeze(-1) + logits.detach()
            importance = torch.sigmoid(importance_logits)
            noise = -torch.log(-torch.log(torch.rand_like(importance).clamp(1e-6, 1 - 1e-6))) if self.training else 0.0
            kept = keep_highest(importance_logits + noise, mask, self.keep)
            if boundaries is None and shallow.distances is not None:
                boundaries = near_crossings(shallow.distances, self.protect)
            if boundaries is not None:
                kept = kept | (boundaries & mask)
            straight = straight_through(kept.to(importance.dtype), importance)
        active = kept & self._worth_it(tau, kept, mask)
        tried = active
        if self.training and self.depth is not None:  # the value of depth is learned only where depth was tried
            tried = active | (mask & (torch.rand_like(tau) < self.explore))
        return Depth(logits, tau, importance, log_variance, kept, active, tried), tau * straight

    def _tau(self, logits: Tensor, mask: Tensor) -> Tensor:
        """Depth from the predictor's logits, (B, T) each.

        Without a fixed `tau_min`, logits are measured from a threshold: the running quantile that lets `share` of the
        positions pass with a tau of one half; in the first `warmup` batches it rises from letting all pass. A budget
        moves the threshold of each sequence to where that many pass: more depth counts for more, not only runs.
        """
        if self.tau_min is not None:
            return torch.sigmoid(logits)
        if self.budget is not None and not self.training:
            chosen = keep_highest(logits, mask, self.budget)
            lowest = logits.masked_fill(~chosen, float("inf")).amin(1, keepdim=True)
            return torch.sigmoid(SHARPNESS * (logits - lowest))
        if self.training:
            done = min(int(self.batches) / max(self.warmup, 1), 1.0)
            quantile = torch.quantile(logits.detach()[mask].float(), (1 - self.share) * done)
            self.threshold.lerp_(quantile, 0.1 if int(self.batches) else 1.0)
            self.batches += 1
        return torch.sigmoid(SHARPNESS * (logits - self.threshold.clone()))

    def _worth_it(self, tau: Tensor, kept: Tensor, mask: Tensor) -> Tensor:
        """Where tau is high enough. (B, T) each."""
        if self.depth is None:
            return mask
        if self.budget is not None and not self.training:
            return keep_highest(tau.masked_fill(~kept, -1.0), mask, self.budget)
        return tau >= (0.5 if self.tau_min is None else self.tau_min)

    def _steady(self, tau: Tensor) -> Tensor:
        if self.hysteresis == "none":
            return tau
        return hold(tau, self.band) if self.hysteresis == "hold" else dead_zone(tau, self.band)

    def _combine(self, tokens: Tensor, mask: Tensor, shallow: Outputs, decided: Depth, factor: Tensor) -> Outputs:
        """Run the deep path on the tokens to be tried and add what it says about the active ones."""
        everywhere = self.execution == "dense" or (self.training and self.explore >= 1)
        packed = Packed.of(decided.tried, self.deep_window, dense=everywhere)
        if self.training:
            decided.shallow = shallow
        if not len(packed.index):
            return replace(shallow)
        before = packed.gather(tokens)
        if self.training and self.combine != "layers":
            # What runs is what was trained: below the threshold depth adds nothing, but its gradient is known.
            factor = straight_through(factor.detach() * decided.active, factor)
        weight = packed.gather(factor.unsqueeze(-1))
        context = self.zoom(tokens, mask, packed, everywhere) if self.zoom is not None else packed.layout
        if self.combine == "layers":
            after = self._gated_layers(before, weight, packed, context)
        else:
            after = before
            for layer in self.deep:
                after = self._layer(layer, after, context)
        start = shallow.map(packed.gather)
        if self.combine == "features":
            if self.training:
                decided.deep = packed.scatter_into(shallow, self.heads(after, packed.mask, start).finest)
            return packed.scatter_into(
                shallow, self.heads(torch.lerp(before, after, weight), packed.mask, start).finest
            )
        deep = self.heads(after, packed.mask, start).finest
        if self.training:
            decided.deep = packed.scatter_into(shallow, deep)
        if self.combine == "layers":
            return packed.masked(decided.active.flatten()[packed.index]).scatter_into(shallow, deep)
        blended = start.blend(deep, weight)
        if self.combine == "logits" and self.normalize_logits:
            calm, sharp = (F.layer_norm(x.logits, x.logits.shape[-1:]) for x in (start, deep))
            blended.logits = torch.lerp(calm, sharp, weight)
        return packed.scatter_into(shallow, blended)

    def _gated_layers(self, tokens: Tensor, tau: Tensor, packed: Packed, context: Context) -> Tensor:
        """Layer l adds its update with gate `clip(L * tau - l, 0, 1)`: tau is how many layers a position gets.

        tokens: (1, N, D), tau: (1, N, 1). A token whose gate is closed is done, and leaves the packed sequence.
        """
        result = tokens
        here = torch.arange(tokens.shape[1], device=tokens.device)
        for number, layer in enumerate(self.deep):
            opening = (len(self.deep) * tau - number).clamp(0, 1)
            going = packed.mask[0] & (opening[0, :, 0] > 0)
            if not bool(going.any()):
                break
            if isinstance(context, Surroundings) and context.layout is not None:
                opening = opening * going[None, :, None]
            elif self.execution == "sparse":
                packed, tokens, tau, opening, here = (
                    packed.select(going), tokens[:, going], tau[:, going], opening[:, going], here[going]
                )  # fmt: skip
                context = context.select(going) if isinstance(context, Surroundings) else packed.layout
            else:
                packed = packed.masked(going)
                opening, context = opening * going[None, :, None], packed.layout
            tokens = tokens + opening * (self._layer(layer, tokens, context) - tokens)
            result = result.index_copy(1, here, tokens)
        return result

    def _layer(self, layer: nn.Module, tokens: Tensor, context: Context) -> Tensor:
        if self.checkpoint_deep and self.training:
            return checkpoint(layer, tokens, context, use_reentrant=False)
        return layer(tokens, context)

    threshold: Tensor
    batches: Tensor


def claims(shallow: Outputs) -> tuple[Tensor, ...]:
    """What the shallow path claims at each position, CLAIMS times (B, T): an instance, a boundary; and how surely.

    Segments come from positions that claim an instance, their ends from positions that claim a boundary: there depth
    matters most, and the depth predictor need not learn to see it in the tokens.
    """
    crossing = unsure = torch.zeros_like(shallow.logits[..., 0])
    if shallow.distances is not None and shallow.distance_log_variance is not None:
        beside = crossing_weight(shallow.distances)
        crossing, unsure = beside.amax(-1), (beside * shallow.distance_log_variance).amax(-1)
    assert shallow.offset_log_variance is not None
    surest = shallow.logits.amax(-1)
    return surest, shallow.offset_log_variance.mean(-1), crossing, unsure


@register("tzn")
def build_tzn(deep_layers: int | None, input_width: int, classes: int, /, **options: object) -> TemporalZoom:
    """`tzn`, or `tzn-N` with N deep layers."""
    if deep_layers is not None:
        options["deep_layers"] = deep_layers
    return TemporalZoom(input_width, classes, **options)  # type: ignore[arg-type]
