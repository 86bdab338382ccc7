"""Other ways to allocate depth, on the shallow network, the deep layers and the heads of `tzn`: only the allocation
differs.

Deep layers look at shallow tokens (`zoom`), so a position's result does not depend on how deep its neighbours go. In
training every layer runs everywhere and masks choose; at inference a position that is done leaves the packed sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.adaptive import SHALLOW_EVIDENCE, shallow_evidence
from temporalzoom.models.deep import Surroundings
from temporalzoom.models.depth import LEAK, RunningStandard, gumbel_noise, keep_highest, straight_through
from temporalzoom.models.heads import ConvolutionHeads, corrected, distance_head, mlp
from temporalzoom.models.outputs import Depth, Outputs, Routing
from temporalzoom.models.packing import Packed, in_rows, put, take
from temporalzoom.models.registry import no_depth, register
from temporalzoom.models.tzn import TemporalZoom
from temporalzoom.processes import whole_batch

Router = Literal["discrete", "gumbel", "reinforce", "exit", "calibrated-exit", "taught-exit", "mixture"]
ROUTERS = get_args(Router)
CLASSIFIED = ("discrete", "gumbel", "reinforce", "taught-exit")
WITH_EXITS = ("exit", "calibrated-exit", "taught-exit")
# Of Gumbel-Softmax: exp(-batches / COOLING), down to the lowest temperature.
COOLING, COLDEST = 300.0, 0.1


class DepthClassifier(nn.Module):
    """Logits of K depths from tokens (B, T, D) and evidence (B, T, E): (B, T, K). The inputs of `DepthPredictor`."""

    def __init__(self, width: int, evidence: int, hidden: int, depths: int) -> None:
        super().__init__()
        self.standard = RunningStandard(evidence)
        last = nn.Linear(hidden, depths)
        nn.init.normal_(last.weight, std=0.01)
        nn.init.zeros_(last.bias)
        self.gate = nn.Sequential(nn.Linear(width + evidence, hidden), nn.LeakyReLU(LEAK), last)

    def forward(self, tokens: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
        return self.gate(torch.cat((tokens, self.standard(evidence, mask)), -1))


class ExitHead(nn.Module):
    """Corrects the shallow outputs of tokens (..., D) that may leave here. Initialized to zero: it corrects nothing."""

    def __init__(self, width: int, classes: int, distance_channels: int | None) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.classes = mlp(width, [0.0] * classes, spread=0.0)
        self.box = mlp(width, [0.0] * 4, spread=0.0)
        self.distance = distance_head(width, distance_channels)

    def forward(self, tokens: Tensor, before: Outputs) -> Outputs:
        return corrected(self.norm(tokens), before, self.classes, self.box, self.distance)


class RoutedZoom(TemporalZoom):
    """A number of deep layers for each position, chosen among `depths`.

    allocation: `discrete`, the argmax of a classifier that learns the best depth; `gumbel`, the same classifier that
    learns through Gumbel-Softmax samples; `reinforce`, by policy gradient; `exit`, a head at each of `depths`: a
    position leaves at the first that is more sure of every class than `confidence`; `calibrated-exit`, with a learned
    temperature at each; `taught-exit`, a head at each too, and a classifier that learns from another network where to
    leave; `mixture`, mixture of depths: each layer has the `share` positions that its own router ranks
    highest.

    Classifiers: a price per layer, subtracted from the logits, keeps the mean depth at `share` of the way from the
    first depth to the last; in training of the samples (`price`), at inference of the argmax (`threshold`).
    """

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        allocation: Router,
        depths: Sequence[int] = (0, 6, 9),
        confidence: float = 0.9,
        **options: Any,
    ) -> None:
        if options.get("boundary_channels") is not None:
            raise ValueError(f"bdr.loss: with model.paper.allocation={allocation} boundaries are not classified")
        layers = options.pop("deep_layers", 7) if allocation == "mixture" else max(depths)
        options |= {"depth": False, "uncertainty": False, "pruning": False, "deep_layers": layers}
        super().__init__(input_width, classes, **options)
        if self.zoom is None:
            raise ValueError(f"model.paper.allocation: {allocation} needs model.zoom above 0")
        self.router: Router = allocation
        self.depths = tuple(range(layers + 1)) if allocation == "mixture" else tuple(depths)
        self.margin = (
            math.log(confidence / (1 - confidence)) if 0 < confidence < 1 else math.copysign(math.inf, confidence - 0.5)
        )
        self.classifier: nn.Module | None = None
        if allocation in CLASSIFIED:
            hidden = 2 * max(self.width // 4, 8)
            self.classifier = DepthClassifier(self.width, SHALLOW_EVIDENCE, hidden, len(self.depths))
            self.register_buffer("price", torch.zeros(()))
        elif allocation == "mixture":
            self.classifier = nn.ModuleList(nn.Linear(self.width, 1) for _ in range(layers))
        if allocation in WITH_EXITS:
            channels = options.get("distance_channels")
            if isinstance(self.heads, ConvolutionHeads):  # each exit corrects with its own
                self.heads.norm = self.heads.classes = self.heads.box = None
            self.exits = nn.ModuleList(ExitHead(self.width, classes, channels) for _ in self.depths)
            if allocation == "calibrated-exit":
                self.log_temperature = nn.Parameter(torch.zeros(len(self.depths)))

    @property
    def predictor(self) -> nn.Module | None:
        return self.classifier

    @property
    def has_budget(self) -> bool:
        return self.router == "mixture"

    def _decide(
        self, features: Tensor, tokens: Tensor, mask: Tensor, shallow: Outputs, boundaries: Tensor | None
    ) -> tuple[Depth, Tensor]:
        """Of a classifier: the depth of each position, `tau` as a share of all layers. The others decide on the way."""
        unknown = torch.zeros_like(mask, dtype=tokens.dtype)
        decided = Depth(unknown, unknown, unknown + 1, unknown, mask, mask, mask)
        if not isinstance(self.classifier, DepthClassifier):
            return decided, unknown
        evidence = torch.stack(shallow_evidence(shallow), -1).detach()
        logits = self.classifier(F.layer_norm(tokens, (self.width,)).detach(), evidence, mask)
        layers = logits.new_tensor(self.depths)
        chosen = one_hot_of_highest(logits - self.threshold * layers)
        if self.training:
            self._update_prices(whole_batch(logits.detach())[whole_batch(mask)], layers)
            policy = logits - self.price * layers
            if self.router == "gumbel":
                chosen = gumbel_softmax(policy, max(math.exp(-int(self.batches) / COOLING), COLDEST))
            elif self.router == "reinforce":
                chosen = one_hot_of_highest(policy.detach() + gumbel_noise(policy))  # a sample of the policy
            decided.routing = Routing(policy if self.router == "reinforce" else logits, chosen)
        count = (chosen.detach() * layers).sum(-1) * mask
        decided.tau, decided.active = count / max(self.depths), count > 0
        decided.logits = logits.amax(-1) if len(self.depths) < 2 else logits[..., 1:].amax(-1) - logits[..., 0]
        return decided, count

    def _update_prices(self, logits: Tensor, layers: Tensor) -> None:
        """logits: (N, K)."""
        mean = float(layers.min() + self.share * (layers.max() - layers.min()))
        amount = 0.1 if int(self.batches) else 1.0
        self.price.lerp_(price_for(logits, layers, mean, sampled=True), amount)
        self.threshold.lerp_(price_for(logits, layers, mean, sampled=False), amount)
        self.batches += 1

    def _combine(self, tokens: Tensor, mask: Tensor, shallow: Outputs, decided: Depth, factor: Tensor) -> Outputs:
        base = self.heads.normalized(shallow)
        if self.training:
            decided.shallow = base
        if self.router == "mixture":
            return self._mixture(tokens, mask, shallow, base, decided)
        if self.training:
            return self._every_depth(tokens, mask, shallow, base, decided)
        if self.router in WITH_EXITS:
            return self._leaving(tokens, mask, shallow, base, decided, factor)
        return self._chosen_depths(tokens, mask, shallow, base, decided, factor)

    def _every_depth(self, tokens: Tensor, mask: Tensor, shallow: Outputs, base: Outputs, decided: Depth) -> Outputs:
        """Training: the outputs of all depths everywhere, and of them those that are chosen."""
        assert self.zoom is not None
        packed = Packed.of(mask, None, dense=True)
        context = self.zoom(tokens, mask, packed, True)
        state, start, found = packed.gather(tokens), shallow.map(packed.gather), []
        for number in range(max(self.depths) + 1):
            if number:
                state = self._layer(self.deep[number - 1], state, context)
            if number in self.depths:
                outputs = base if number == 0 else packed.scatter_into(base, self._read(state, start, packed, number))
                found.append(outputs)
        if decided.routing is None:  # exits
            stack = torch.stack([self._margins(outputs.logits, k) for k, outputs in enumerate(found)], -1)
            sure = torch.cat((stack[..., :-1] > self.margin, torch.ones_like(stack[..., :1], dtype=torch.bool)), -1)
            chosen = F.one_hot(sure.float().argmax(-1), len(found)).to(tokens.dtype)
            decided.routing = Routing(stack, chosen)
            decided.tau = (chosen * chosen.new_tensor(self.depths)).sum(-1) / max(self.depths) * mask
            decided.active = mask
        decided.routing.exits = Outputs.concatenate(found)
        decided.routing.temperatures = self.log_temperature.exp() if self.router == "calibrated-exit" else None
        return weighted(found, decided.routing.chosen)

    def _read(self, state: Tensor, start: Outputs, packed: Packed, depth: int) -> Outputs:
        if hasattr(self, "exits"):
            return self.heads.normalized(self.exits[self.depths.index(depth)](state, start))
        return self.heads.normalized(self.heads.deeper(state, start))

    def _margins(self, logits: Tensor, number: int) -> Tensor:
        """How sure exit `number` is of its least sure class, in logits: (..., C) -> (...)."""
        logits = logits.detach()
        if self.router == "calibrated-exit":
            logits = logits / self.log_temperature[number].detach().exp()
        return logits.abs().amin(-1)

    def _packed(self, tokens: Tensor, mask: Tensor, going: Tensor) -> tuple[Packed, Surroundings]:
        """The tokens that go deep, and what they see. In dense execution all of them, masked."""
        assert self.zoom is not None
        packed = Packed.of(going, None, dense=self.execution == "dense")
        return packed, self.zoom(tokens, mask, packed, self.execution == "dense")

    def _chosen_depths(
        self, tokens: Tensor, mask: Tensor, shallow: Outputs, base: Outputs, decided: Depth, count: Tensor
    ) -> Outputs:
        packed, context = self._packed(tokens, mask, decided.active)
        whole = packed
        if not packed.index.numel():
            return base
        state, count = packed.gather(tokens), packed.gather(count.unsqueeze(-1))
        start = shallow.map(packed.gather)
        result, here = state.flatten(0, 1), in_rows(torch.arange(packed.index.numel(), device=tokens.device), 1)
        for number, layer in enumerate(self.deep):
            going = packed.mask & (count.squeeze(-1) > number)
            if not bool(going.any()):
                break
            if self.execution != "dense" and not bool(going.all()):
                packed, kept = packed.select(going)
                state, count, here = take(state, kept), take(count, kept), take(here.unsqueeze(-1), kept).squeeze(-1)
                context, going = context.select(kept.flatten()), packed.mask
            state = torch.where(going.unsqueeze(-1), layer(state, context), state)
            result = put(result, here.flatten(), state.flatten(0, 1))
        return whole.scatter_into(base, self._read(in_rows(result, 1), start, whole, max(self.depths)))

    def _leaving(
        self, tokens: Tensor, mask: Tensor, shallow: Outputs, base: Outputs, decided: Depth, count: Tensor
    ) -> Outputs:
        """Positions leave at the first exit that is sure, or where the classifier says: after `count` layers."""
        packed, context = self._packed(tokens, mask, mask)
        count = packed.gather(count.unsqueeze(-1))
        state, start, outputs = packed.gather(tokens), shallow.map(packed.gather), base
        reached = torch.zeros_like(mask, dtype=tokens.dtype).flatten()
        for number, layer in enumerate(self.deep, 1):
            state = layer(state, context)
            if number not in self.depths:
                continue
            read, place = self._read(state, start, packed, number), self.depths.index(number)
            sure = self._margins(read.logits, place) > self.margin
            leaving = packed.mask & (sure if self.classifier is None else count.squeeze(-1) <= number)
            if number == max(self.depths):
                leaving = packed.mask
            outputs = packed.masked(leaving).scatter_into(outputs, read)
            reached = torch.where(_marked(packed, leaving, reached), torch.full_like(reached, number), reached)
            going = packed.mask & ~leaving
            if not bool(going.any()):
                break
            if self.execution == "dense":
                packed = packed.masked(going)
            else:
                packed, kept = packed.select(going)
                state, count, context = take(state, kept), take(count, kept), context.select(kept.flatten())
                start = start.map(lambda x, kept=kept: take(x, kept))  # type: ignore[misc]
        decided.tau = reached.view(mask.shape) / max(self.depths)
        return outputs

    def _mixture(self, tokens: Tensor, mask: Tensor, shallow: Outputs, base: Outputs, decided: Depth) -> Outputs:
        assert self.zoom is not None and isinstance(self.classifier, nn.ModuleList)
        share = self.share if self.budget is None or self.training else self.budget
        everywhere = self.training or self.execution == "dense"
        both = self.zoom.keys_and_values(tokens)
        state, ran = tokens, torch.zeros_like(mask, dtype=tokens.dtype)
        for layer, router in zip(self.deep, self.classifier, strict=True):
            score = router(F.layer_norm(state, (self.width,))).squeeze(-1)
            chosen = keep_highest(score.detach(), mask, share)
            ran = ran + chosen
            packed = Packed.of(mask if everywhere else chosen, None, dense=everywhere)
            if not packed.index.numel():
                continue
            context = self.zoom.around(both, mask, packed, everywhere)
            after = self._layer(layer, packed.gather(state), context)
            if everywhere:
                hard = chosen.to(state.dtype)
                weight = straight_through(hard, torch.sigmoid(score)) if self.training else hard
                state = state + weight.unsqueeze(-1) * (after.view_as(state) - state)
            else:
                state = put(state.flatten(0, 1), packed.index.flatten(), after.flatten(0, 1)).view_as(state)
        decided.tau, decided.active = ran / max(len(self.deep), 1), ran > 0
        packed = Packed.of(mask if everywhere else decided.active, None, dense=everywhere)
        if not packed.index.numel():
            return base
        start, active = shallow.map(packed.gather), packed.gather(decided.active.unsqueeze(-1))
        mixed = self.heads.normalized(self.heads.deeper(packed.gather(state), start))
        if self.training:  # where nothing ran the shallow outputs, with the gradient of having run
            return packed.scatter_into(base, self.heads.normalized(start).replaced(mixed, active))
        return packed.masked(active.squeeze(-1)).scatter_into(base, mixed)

    price: Tensor


def _marked(packed: Packed, entries: Tensor, like: Tensor) -> Tensor:
    """Where the flattened batch has these entries of a packing: boolean, of the shape of `like`."""
    marked = torch.zeros_like(like, dtype=torch.bool)
    marked[packed.index[entries]] = True
    return marked


def one_hot_of_highest(logits: Tensor) -> Tensor:
    """(..., K) -> (..., K)."""
    return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)


def gumbel_softmax(logits: Tensor, temperature: float) -> Tensor:
    """A sample of the categorical distribution as one-hot vectors, with the gradient of the softened ones."""
    noisy = logits + gumbel_noise(logits)
    return straight_through(one_hot_of_highest(noisy.detach()), torch.softmax(noisy / temperature, -1))


def price_for(logits: Tensor, layers: Tensor, mean: float, sampled: bool, limit: float = 30.0) -> Tensor:
    """The price per layer at which N positions have `mean` layers on average, as samples or as the highest of their
    logits. logits: (N, K), layers: (K,) -> ()."""
    low, high = logits.new_tensor(-limit), logits.new_tensor(limit)
    for _ in range(30):
        price = (low + high) / 2
        dear = logits - price * layers
        shares = dear.softmax(-1) if sampled else one_hot_of_highest(dear)
        more = (shares * layers).sum(-1).mean() > mean
        low, high = torch.where(more, price, low), torch.where(more, high, price)
    return high


def weighted(parts: Sequence[Outputs], weights: Tensor) -> Outputs:
    """The sum of K outputs (B, T, ...) with weights (B, T, K)."""
    names = [name for name, value in vars(parts[0]).items() if isinstance(value, Tensor)]
    return Outputs(**{n: sum(getattr(p, n) * weights[..., k, None] for k, p in enumerate(parts)) for n in names})


@register("tzn")
def build_tzn(
    depth: int | None,
    input_width: int,
    classes: int,
    /,
    *,
    depths: Sequence[int] = (0, 6, 9),
    confidence: float = 0.9,
    **options: Any,
) -> TemporalZoom:
    no_depth("tzn", depth)
    if options.get("allocation", "tau") in ROUTERS:
        return RoutedZoom(input_width, classes, depths=depths, confidence=confidence, **options)
    return TemporalZoom(input_width, classes, **options)
