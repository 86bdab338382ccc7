"""Adaptive depth on any trunk: which positions are worth more layers, and running these there only.

A trunk hands in its tokens at full resolution and what its heads read from them. What is written here is what runs. A
position whose depth is below the threshold, or that was pruned, never enters a deep layer: the active tokens of the
whole batch are gathered into one packed sequence, run, and scattered back. The same code is what an exporter traces
(one sequence, nothing padded): see `torch.jit.is_tracing`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from temporalzoom.models.allocation import Allocation, ranks
from temporalzoom.models.deep import Surroundings, Zoom, ZoomLayer
from temporalzoom.models.depth import (
    DepthPredictor,
    LocalContext,
    Uncertainty,
    crossing_weight,
    dead_zone,
    gate,
    gradient_magnitude,
    gumbel_noise,
    hold,
    keep_highest,
    near_crossings,
    straight_through,
)
from temporalzoom.models.heads import LevelledHeads
from temporalzoom.models.layers import Encoder, Regularization, TokenLayout
from temporalzoom.models.level_heads import Reading
from temporalzoom.models.outputs import Depth, Outputs
from temporalzoom.models.packing import Packed, in_rows, put, take
from temporalzoom.processes import uniform, whole_batch

Combine = Literal["residual", "logits", "features", "layers"]
Hysteresis = Literal["none", "hold", "deadzone"]
Context = Surroundings | TokenLayout

# How quickly tau rises around its threshold.
SHARPNESS = 6.0
# With supervision `stopped`: positions with a smaller tau do not teach the depth predictor.
STOPPED = 0.3
# Channels of `shallow_evidence`.
SHALLOW_EVIDENCE = 4


@dataclass(frozen=True)
class DepthOptions:
    """What decides and zooms. Every part can be switched off.

    depth=False: no depth predictor, every kept position gets the whole deep path. uncertainty=False: no local context,
    sigma^2 is not predicted.
    zoom: an active token attends to the shallow tokens up to `zoom` positions to either side, and to no other active
    one; 0: to the other active ones up to `deep_window` positions away. explore: share of the other positions that run
    in training too, to learn the value of depth there; 1: all.
    budget: at inference, the share of positions with the highest tau that enter the deep path, instead of a threshold.
    supervision: `value`, tau learns from its own target only; `penalty`, from the detection loss through the mixture;
    `stopped`, the same, but not where it is below STOPPED.

    combine: how both paths become one output. `residual`: shallow + tau * (deep - shallow). `logits`: the same on
    layer-normalized logits, the "logit-space blending" of the paper's appendix; after it logits are comparable between
    classes, but no longer calibrated between positions. `features`: blends hidden states before the heads. `layers`:
    tau is the number of deep layers that a position gets.

    pruning: the paper's token pruning: positions outside the `keep` most important ones do not enter the deep path,
    but those up to `protect` positions from a boundary of the shallow distance field always may; None: none.
    Off by default: depth selects a tenth of the positions (`share`), and pruning, which keeps eight tenths and ranks
    them by the same logits, drops none of these, but costs time. It matters where depth=False.

    hysteresis: of tau along time, in a `band`: `hold` or `deadzone` (see `depth`). Off by default: around its threshold
    tau is so steep that `hold` changes next to none of the positions that are active.

    allocation: `tau`, the depth predictor says where; the others are controls without one, see `allocation`, in which
    `share` (or `budget`) of the positions have a tau of one and all others of zero. seed: of the random ones.
    """

    deep_layers: int = 7
    deep_window: int | None = 32
    expansion: int = 2
    zoom: int = 24
    combine: Combine = "residual"
    depth: bool = True
    uncertainty: bool = True
    context: LocalContext = "convolution"
    pruning: bool = False
    keep: float = 0.8
    protect: int | None = 3
    tau_min: float | None = None
    share: float = 0.1
    warmup: int = 100
    explore: float = 1.0
    budget: float | None = None
    hysteresis: Hysteresis = "none"
    band: float = 0.05
    supervision: Literal["value", "penalty", "stopped"] = "value"
    allocation: Allocation = "tau"
    seed: int = 0
    execution: Literal["sparse", "dense"] = "sparse"
    checkpoint_deep: bool = False


class AdaptiveDepth(nn.Module, ABC):
    """Where-to-zoom, deep path, combination, on a trunk that a subclass adds.

    A subclass builds its trunk, then the deep path, then its heads, then what decides: weights are drawn in this order.
    """

    heads: LevelledHeads
    deep: nn.ModuleList
    zoom: Zoom | None
    uncertainty: Uncertainty | None
    depth: DepthPredictor | None
    importance: nn.Module | None
    threshold: Tensor
    batches: Tensor

    def __init__(self, width: int, options: DepthOptions) -> None:
        super().__init__()
        self.width, self.deep_window, self.combine = width, options.deep_window, options.combine
        self.keep, self.protect = options.keep, options.protect
        self.tau_min, self.share, self.warmup = options.tau_min, options.share, options.warmup
        self.explore, self.budget = options.explore, options.budget
        self.hysteresis, self.band = options.hysteresis, options.band
        self.allocation, self.seed = options.allocation, options.seed
        self.supervision, self.execution = options.supervision, options.execution
        self.checkpoint_deep = options.checkpoint_deep

    def add_deep_path(self, heads: int, regularization: Regularization, options: DepthOptions) -> None:
        packed = replace(regularization, per_token=True)
        reach, layers = (0, 0) if self.allocation == "none" else (options.zoom, options.deep_layers)
        if reach:
            self.deep = nn.ModuleList(
                ZoomLayer(self.width, heads, reach, packed, options.expansion) for _ in range(layers)
            )
        else:
            self.deep = Encoder(self.width, heads, layers, self.deep_window, packed, options.expansion).layers
        self.zoom = Zoom(self.width, heads, reach) if reach else None

    def add_deciders(self, options: DepthOptions) -> None:
        narrow, predicts = max(self.width // 4, 8), self.allocation == "tau"
        uncertainty, depth, pruning = (predicts and x for x in (options.uncertainty, options.depth, options.pruning))
        self.uncertainty = Uncertainty(self.width, narrow, options.context) if uncertainty else None
        self.depth = DepthPredictor(self.width, 1 + SHALLOW_EVIDENCE, 2 * narrow) if depth else None
        self.importance = gate(self.width, narrow, bias=2.0) if pruning else None
        self.register_buffer("threshold", torch.zeros(()))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    @abstractmethod
    def read(self, features: Tensor, mask: Tensor) -> tuple[Tensor, Reading]:
        """The trunk: features (B, T, F), mask (B, T) -> tokens (B, T, D), and the outputs of all levels."""

    @property
    @abstractmethod
    def input_factor(self) -> Tensor | None:
        """What the trunk multiplies each channel of its input by, (F,), to bring all of them to one scale."""

    @property
    def predictor(self) -> nn.Module | None:
        """What learns where depth goes."""
        return self.depth if self.depth is not None else self.importance

    @property
    def has_budget(self) -> bool:
        """Whether `budget` says how many positions go deep."""
        return self.allocation != "none"

    def forward(self, features: Tensor, mask: Tensor, boundaries: Tensor | None = None) -> Outputs:
        """features: (B, T, F), mask: (B, T); boundaries: (B, T), true ones, for the oracle ablations."""
        tokens, reading = self.read(features, mask)
        return self.zoomed(features, tokens, mask, reading, boundaries)

    def zoomed(
        self, features: Tensor, tokens: Tensor, mask: Tensor, reading: Reading, boundaries: Tensor | None = None
    ) -> Outputs:
        """What a trunk found, corrected at the positions that are worth it. tokens: (B, T, D).

        Long instances need no depth: coarse levels read the trunk's tokens, and distances correct their ends.
        """
        decided, factor = self._decide(features, tokens, mask, reading.finest, boundaries)
        outputs = self._combine(tokens, mask, reading.finest, decided, factor)
        outputs.depth = decided
        coarser = None if reading.coarser is None else self.heads.normalized(reading.coarser)
        return Reading(reading.finest, coarser, reading.points).joined(outputs)

    def _decide(
        self, features: Tensor, tokens: Tensor, mask: Tensor, shallow: Outputs, boundaries: Tensor | None
    ) -> tuple[Depth, Tensor]:
        """Which positions enter the deep path, and the factor (B, T) of what it adds: tau, zero where pruned."""
        if self.allocation != "tau":
            decided = self._allocate(mask, boundaries)
            return decided, decided.tau
        tokens = F.layer_norm(tokens, (self.width,))
        # The gates learn where depth pays; their gradients must not change the tokens that all heads read.
        fixed = tokens.detach()
        unknown = torch.zeros_like(mask, dtype=tokens.dtype)
        log_variance = unknown
        if self.uncertainty is not None:
            change = gradient_magnitude(features, mask, self.input_factor)
            log_variance = self.uncertainty(tokens, change, mask)
        logits, tau = unknown, torch.ones_like(unknown)
        if self.depth is not None:
            evidence = torch.stack((log_variance, *shallow_evidence(shallow)), -1).detach()
            logits = self.depth(fixed, evidence, mask)
            tau = self._steady(self._tau(logits, mask))
            if self.supervision == "value":  # depth costs the detection loss nothing: it would ask for it everywhere
                tau = tau.detach()
            elif self.supervision == "stopped":
                tau = torch.where(tau < STOPPED, tau.detach(), tau)
        importance, kept = torch.ones_like(unknown), mask
        if self.importance is not None:
            # Added to the depth predictor's logits: an untrained pruner must not drop what is worth depth.
            importance_logits = self.importance(fixed).squeeze(-1) + logits.detach()
            importance = torch.sigmoid(importance_logits)
            noise = gumbel_noise(importance) if self.training else 0.0
            kept = keep_highest(importance_logits + noise, mask, self.keep)
            if boundaries is None and shallow.distances is not None and self.protect is not None:
                boundaries = near_crossings(shallow.distances, self.protect)
            if boundaries is not None:
                kept = kept | (boundaries & mask)
        active = self._active(tau, kept, mask)
        kept = kept | active
        factor = tau
        if self.importance is not None:
            factor = tau * straight_through(kept.to(importance.dtype), importance)
        tried = active
        if self.training and self.depth is not None:  # the value of depth is learned only where depth was tried
            tried = active | (mask & (uniform(tau.shape, tau, tau.dtype) < self.explore))
        return Depth(logits, tau, importance, log_variance, kept, active, tried), factor

    def _allocate(self, mask: Tensor, boundaries: Tensor | None) -> Depth:
        """The same without a predictor."""
        scores = torch.zeros_like(mask, dtype=torch.float32)
        active = tried = torch.zeros_like(mask)
        if self.allocation != "none":
            share = self.share if self.budget is None or self.training else self.budget
            scores = ranks(self.allocation, mask, share, boundaries, None if self.training else self.seed)
            active = keep_highest(scores, mask, share)
            tried = mask if self.training and self.explore >= 1 else active
        unknown = torch.zeros_like(scores)
        return Depth(scores, active.to(scores.dtype), unknown + 1, unknown, mask, active, tried)

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
            everywhere = whole_batch(logits.detach())[whole_batch(mask)]
            quantile = torch.quantile(everywhere.float(), (1 - self.share) * done)
            self.threshold.lerp_(quantile, 0.1 if int(self.batches) else 1.0)
            self.batches += 1
        return torch.sigmoid(SHARPNESS * (logits - self.threshold.clone()))

    def _active(self, tau: Tensor, kept: Tensor, mask: Tensor) -> Tensor:
        """Which positions enter the deep path, (B, T) each. A budget is spent in full: on pruned ones last."""
        if self.depth is None:
            return kept
        if self.budget is not None and not self.training:
            return keep_highest(torch.where(kept, tau, tau - 2.0), mask, self.budget)
        return kept & (tau >= (0.5 if self.tau_min is None else self.tau_min))

    def _steady(self, tau: Tensor) -> Tensor:
        if self.hysteresis == "none":
            return tau
        return hold(tau, self.band) if self.hysteresis == "hold" else dead_zone(tau, self.band)

    def _combine(self, tokens: Tensor, mask: Tensor, shallow: Outputs, decided: Depth, factor: Tensor) -> Outputs:
        """Run the deep path on the tokens to be tried and combine its outputs with the shallow ones where active."""
        everywhere = self.execution == "dense" or (self.training and self.explore >= 1)
        # Tokens that run only to learn the value of depth are seen by no other: what is active runs as at inference.
        packed = Packed.of(
            decided.tried,
            self.deep_window,
            visible=decided.active,
            dense=everywhere,
            by_sequence=self.zoom is None and self.deep_window is None,
        )
        base = self.heads.normalized(shallow)
        if self.training:
            decided.shallow = base
        if not len(self.deep) or (not torch.jit.is_tracing() and not packed.index.numel()):
            return replace(base)
        before, start = packed.gather(tokens), shallow.map(packed.gather)
        if self.training and self.combine != "layers":
            # What runs is what was trained: below the threshold depth adds nothing, but its gradient is known.
            factor = straight_through(factor.detach() * decided.active, factor)
        weight = packed.gather(factor.unsqueeze(-1))
        active = packed.gather(decided.active.unsqueeze(-1))
        context = self.zoom(tokens, mask, packed, everywhere) if self.zoom is not None else packed.layout
        if self.combine == "layers":
            after = self._gated_layers(before, weight, active, packed, context)
        else:
            after = before
            for layer in self.deep:
                after = self._layer(layer, after, context)
        mixed = None
        if self.combine == "features":
            mixed = self.heads.deeper(torch.lerp(before, after, weight), start)
        if self.training or mixed is None:
            deep = self.heads.normalized(self.heads.deeper(after, start))
            if self.training:
                decided.deep = packed.scatter_into(base, deep)
            if self.combine in ("residual", "logits"):
                return packed.scatter_into(base, self.heads.normalized(start).blend(deep, weight))
            mixed = deep if mixed is None else mixed
            if self.combine == "features" and weight.requires_grad:
                return packed.scatter_into(base, start.replaced(mixed, active))
        # Only where active: heads that correct the shallow outputs do so at a weight of zero too.
        return packed.masked(active.squeeze(-1)).scatter_into(base, mixed)

    def _gated_layers(self, tokens: Tensor, tau: Tensor, active: Tensor, packed: Packed, context: Context) -> Tensor:
        """Layer l adds its update with gate `clip(L * tau - l, 0, 1)`: tau is how many layers a position gets.

        tokens: (R, M, D), tau: (R, M, 1), active: (R, M, 1). A token whose gate is closed is done, and leaves the
        packed sequence. Tokens that are tried without being active pass all layers: their tau, low as it is, would hide
        what depth is worth there.
        """
        rows, result = len(tokens), tokens.flatten(0, 1)
        here = torch.arange(packed.index.numel(), device=tokens.device)
        here = in_rows(here, rows)
        for number, layer in enumerate(self.deep):
            opening = (len(self.deep) * tau - number).clamp(0, 1)
            if self.training:
                opening = torch.where(active, opening, straight_through(torch.ones_like(opening), opening))
            going = packed.mask & (opening.squeeze(-1) > 0)
            if not torch.jit.is_tracing() and not bool(going.any()):
                break
            if self.execution == "dense" or (isinstance(context, Surroundings) and context.layout is not None):
                packed = packed.masked(going)
            else:
                packed, chosen = packed.select(going)
                tokens, tau, active, opening, here = (
                    take(x, chosen) for x in (tokens, tau, active, opening, here.unsqueeze(-1))
                )
                here = here.squeeze(-1)
                if isinstance(context, Surroundings):
                    context = context.select(chosen.flatten())
            if not isinstance(context, Surroundings):
                context = packed.layout
            tokens = tokens + opening * packed.mask.unsqueeze(-1) * (self._layer(layer, tokens, context) - tokens)
            result = put(result, here.flatten(), tokens.flatten(0, 1))
        return in_rows(result, rows)

    def _layer(self, layer: nn.Module, tokens: Tensor, context: Context) -> Tensor:
        if self.checkpoint_deep and self.training:
            return checkpoint(layer, tokens, context, use_reentrant=False)
        return layer(tokens, context)


def shallow_evidence(shallow: Outputs) -> tuple[Tensor, ...]:
    """What the shallow path predicts at each position, SHALLOW_EVIDENCE times (B, T): the highest class logit, the
    variance of the box, the nearness of a boundary, and the variance of its distance; zeros where it predicts none.

    Segments come from positions with a high class score, their ends from positions beside a predicted boundary: depth
    matters most there, and the depth predictor need not learn to read that from the tokens.
    """
    crossing = unsure = torch.zeros_like(shallow.logits[..., 0])
    if shallow.distances is not None and shallow.distance_log_variance is not None:
        beside = crossing_weight(shallow.distances)
        crossing, unsure = beside.amax(-1), (beside * shallow.distance_log_variance).amax(-1)
    box = shallow.offset_log_variance
    return shallow.logits.amax(-1), torch.zeros_like(crossing) if box is None else box.mean(-1), crossing, unsure
