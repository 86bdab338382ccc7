"""`uniform-N` and `tzn` written so that an exporter can follow them: one sequence of any length, nothing padded.

The weights are the model's own. What differs from `temporalzoom.models` is only what a graph of fixed operators cannot
hold: blocks are cut by gathering rows, branches on data are gone, and the hysteresis, a loop there, is found by
doubling steps. Results agree to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.inference.onnx_network import RAW_NAMES
from temporalzoom.models.attention import MIN_BLOCK, SelfAttention
from temporalzoom.models.deep import Look, ZoomLayer
from temporalzoom.models.depth import LOCAL_WINDOW, LocalConvolution, Uncertainty, dead_zone
from temporalzoom.models.inputs import Projection
from temporalzoom.models.layers import GLOBAL_REACH, TransformerLayer
from temporalzoom.models.level_heads import Reading
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.tzn import SHARPNESS, TemporalZoom, claims
from temporalzoom.models.uniform import Uniform

# What bars a key from being seen. Not -inf: a padded query that sees nothing would become NaN.
BARRED = -1e30
# Sequences of up to 2 ** DOUBLINGS positions have an exact hysteresis.
DOUBLINGS = 17


@dataclass(frozen=True)
class Band:
    """Block-local attention as tables of row numbers, for L tokens in N blocks; N = 1 and all keys if global.

    queries: (N, block), keys: (N, K), rows of the sequence, clamped to it; distance: (block, K) or (N, block, K), into
    the table of biases; barred: added to similarities (N, H, block, K). previous, following: (L, 1), 1 where the
    neighbouring entry is one position away.
    """

    queries: Tensor
    keys: Tensor
    distance: Tensor
    barred: Tensor
    previous: Tensor
    following: Tensor


def band(positions: Tensor, window: int | None, contiguous: bool) -> Band:
    """positions: (L,) ascending; contiguous: they are 0 .. L - 1. window None: every token sees every other one."""
    length = positions.shape[0]
    adjacent = positions[1:] - positions[:-1] == 1
    previous = F.pad(adjacent.float(), (1, 0)).unsqueeze(-1)
    following = F.pad(adjacent.float(), (0, 1)).unsqueeze(-1)
    if window is None:
        difference = positions[None, :] - positions[:, None]
        distance, all_rows = difference.clamp(-GLOBAL_REACH, GLOBAL_REACH) + GLOBAL_REACH, torch.arange(length)[None]
        return Band(all_rows, all_rows, distance, torch.zeros(1, 1, 1, 1), previous, following)
    block = max(window, MIN_BLOCK)
    firsts = torch.arange(0, length, block)[:, None]
    inside_block, around_block = torch.arange(block), torch.arange(-window, block + window)
    queries, keys = firsts + inside_block, firsts + around_block
    outside = (keys < 0) | (keys >= length)
    queries, keys = queries.clamp(max=length - 1), keys.clamp(min=0).clamp(max=length - 1)
    if contiguous:  # every block looks the same but for the ends of the sequence
        difference = around_block - inside_block[:, None]
        barred = BARRED * ((difference.abs() > window)[None, None] | outside[:, None, None])
    else:
        difference = positions[keys][:, None] - positions[queries][:, :, None]
        barred = BARRED * ((difference.abs() > window) | outside[:, None]).unsqueeze(1)
    return Band(queries, keys, difference.clamp(-window, window) + window, barred, previous, following)


def attention(module: SelfAttention, tokens: Tensor, layout: Band) -> Tensor:
    """tokens: (L, D) -> (L, D)."""
    length, width, heads = tokens.shape[0], module.output.out_features, module.heads
    each = width // heads
    query, key, value = module.query_key_value(tokens).split(width, -1)
    bias = module.distance_bias.index_select(1, layout.distance.flatten()).view(heads, *layout.distance.shape)
    if bias.ndim == 4:
        bias = bias.transpose(0, 1)

    def cut(rows: Tensor, table: Tensor) -> Tensor:
        return rows.index_select(0, table.flatten()).view(*table.shape, heads, each).transpose(1, 2)

    similarity = torch.matmul(cut(query * each**-0.5, layout.queries), cut(key, layout.keys).transpose(2, 3))
    shares = (similarity + (bias + layout.barred)).softmax(-1)
    attended = torch.matmul(shares, cut(value, layout.keys)).transpose(1, 2)
    return module.output(attended.reshape(-1, width)[:length])


def transformer_layer(layer: TransformerLayer, tokens: Tensor, layout: Band) -> Tensor:
    """tokens: (L, D) -> (L, D)."""
    mixed = layer.attention_norm(tokens)
    if layer.mix is not None:
        before = F.pad(mixed, (0, 0, 1, 0))[:-1] * layout.previous
        after = F.pad(mixed, (0, 0, 0, 1))[1:] * layout.following
        taps = layer.mix.taps
        mixed = mixed * taps[1] + before * taps[0] + after * taps[2]
    tokens = tokens + layer.attention_branch(attention(layer.attention, mixed, layout))
    return tokens + layer.feed_forward_branch(layer.feed_forward(layer.feed_forward_norm(tokens)))


def encode(layers: nn.ModuleList, tokens: Tensor, layout: Band) -> Tensor:
    for layer in layers:
        tokens = run_layer(layer, tokens, layout)
    return tokens


def project(projection: Projection, features: Tensor, positions: Tensor) -> Tensor:
    """features: (T, F), positions: (T,) -> tokens (T, D)."""
    tokens = projection.standardized(features)
    if projection.stem is not None:
        stem = projection.stem
        windows = tokens.unflatten(1, (stem.window, int(tokens.shape[1]) // stem.window))
        tokens = windows.narrow(1, (stem.window - stem.rows) // 2, stem.rows).flatten(0, 1)
        for convolution, norm in zip(stem.convolutions, stem.norms, strict=True):
            tokens = F.gelu(norm(convolution(tokens[None])[0]))
        # The same rows: but from here on the exporter would take their number for a constant.
        tokens = tokens.index_select(0, positions)
    for convolution, norm in zip(projection.convolutions, projection.norms, strict=True):
        tokens = projection.activation(norm(convolution(tokens[None])[0]))
    return tokens


class UniformForm(nn.Module):
    """features (1, T, F) -> the raw outputs that the model has, in the order of RAW_NAMES."""

    def __init__(self, model: Uniform) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        model, positions = self.model, torch.arange(features.shape[1])
        layout = band(positions, model.window, True)
        tokens = encode(model.encoder.layers, project(model.projection, features[0], positions), layout)
        said = read(model, tokens)
        return raw_tensors(said.joined(said.finest))


class ZoomForm(nn.Module):
    """features (1, T, F) -> the raw outputs, then what DEPTH_NAMES names, (1, T) each.

    Only the active positions are gathered and enter the deep layers: the gating is in the graph.
    """

    def __init__(self, model: TemporalZoom) -> None:
        super().__init__()
        self.model = model

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        model, positions = self.model, torch.arange(features.shape[1])
        layout = band(positions, model.window, True)
        tokens = encode(model.shallow.layers, project(model.projection, features[0], positions), layout)
        said = read(model, tokens)
        shallow = said.finest
        depth, factor = self._decide(features, tokens, shallow, positions)
        index = depth[-1][0].nonzero().squeeze(1)
        rows = raw_tensors(self._deep(tokens, shallow, index, factor[0]))
        both = replace(shallow)
        for name, below, above in zip(RAW_NAMES, raw_tensors(shallow), rows, strict=False):
            setattr(both, name, place(below[0], index, above)[None])
        return *raw_tensors(said.joined(both)), *depth

    def _decide(
        self, features: Tensor, tokens: Tensor, shallow: Outputs, positions: Tensor
    ) -> tuple[tuple[Tensor, ...], Tensor]:
        """As `TemporalZoom._decide` when it does not train: what DEPTH_NAMES names, and the factor of depth (1, T)."""
        model = self.model
        tokens = F.layer_norm(tokens, (int(tokens.shape[-1]),))[None]
        log_variance = logits = torch.zeros_like(tokens[..., 0])
        tau = importance = torch.ones_like(logits)
        kept = logits == 0
        if model.uncertainty is not None:
            change = gradient_magnitude(model.projection.standardized(features[0]), positions)
            log_variance = uncertainty(model.uncertainty, tokens[0], change, positions)[None]
        if model.depth is not None:
            heard = torch.stack((log_variance, *claims(shallow)), -1)
            logits = model.depth(tokens, heard, everywhere(tokens[0]))
            tau = self._tau(logits)
            if model.hysteresis == "hold":
                tau = hold(tau[0], model.band)[None]
            elif model.hysteresis == "deadzone":
                tau = dead_zone(tau, model.band)
        factor = tau
        if model.importance is not None:
            importance_logits = model.importance(tokens).squeeze(-1) + logits
            importance = torch.sigmoid(importance_logits)
            kept = keep_highest(importance_logits, model.keep)
            if shallow.distances is not None:
                kept = kept | near_crossings(shallow.distances[0], model.protect)[None]
            factor = tau * kept.to(tau.dtype)
        active = kept
        if model.depth is not None and model.budget is not None:
            active = kept & keep_highest(tau.masked_fill(~kept, -1.0), model.budget)
        elif model.depth is not None:
            active = kept & (tau >= (0.5 if model.tau_min is None else model.tau_min))
        return (logits, tau, importance, log_variance, kept, active), factor

    def _tau(self, logits: Tensor) -> Tensor:
        model = self.model
        if model.tau_min is not None:
            return torch.sigmoid(logits)
        threshold = model.threshold
        if model.budget is not None:
            chosen = keep_highest(logits, model.budget)
            threshold = logits.masked_fill(~chosen, float("inf")).amin(1, keepdim=True)
        return torch.sigmoid(SHARPNESS * (logits - threshold))

    def _deep(self, tokens: Tensor, shallow: Outputs, index: Tensor, factor: Tensor) -> Outputs:
        """What is said of the active positions. tokens: (T, D), index: (N,), factor: (T,) -> tensors of (N, ...)."""
        model = self.model
        before, weight = tokens.index_select(0, index), factor.index_select(0, index).unsqueeze(-1)
        start = shallow.map(lambda x: x[0].index_select(0, index))
        valid = index >= 0
        if model.combine == "layers":
            return model.heads(self._gated_layers(tokens, index, before, weight), valid, start).finest
        around = self._surroundings(tokens, index)
        after = before
        for layer in model.deep:
            after = run_layer(layer, after, around)
        if model.combine == "features":
            return model.heads(before + weight * (after - before), valid, start).finest
        deep = model.heads(after, valid, start).finest
        mixed = start.blend(deep, weight)
        if model.combine == "logits" and model.normalize_logits:
            calm, sharp = (F.layer_norm(x.logits, (int(x.logits.shape[-1]),)) for x in (start, deep))
            mixed.logits = torch.lerp(calm, sharp, weight)
        return mixed

    def _gated_layers(self, all_tokens: Tensor, index: Tensor, tokens: Tensor, tau: Tensor) -> Tensor:
        """As `TemporalZoom._gated_layers`: a token leaves when its gate closes. tokens: (N, D), tau: (N, 1)."""
        model, result = self.model, tokens
        here = torch.arange(tokens.shape[0])
        around = self._surroundings(all_tokens, index)
        for number, layer in enumerate(model.deep):
            opening = (len(model.deep) * tau - number).clamp(0, 1)
            going = (opening[:, 0] > 0).nonzero().squeeze(1)
            index, tokens, tau, opening, here = (x.index_select(0, going) for x in (index, tokens, tau, opening, here))
            if isinstance(around, Band):
                around = self._surroundings(all_tokens, index)
            else:
                around = Near(*(x.index_select(0, going) for x in (around.keys, around.values, around.barred)))
            tokens = tokens + opening * (run_layer(layer, tokens, around) - tokens)
            result = place(result, here, tokens)
        return result

    def _surroundings(self, tokens: Tensor, index: Tensor) -> Band | Near:
        model = self.model
        if model.zoom is None:
            return band(index, model.deep_window, False)
        keys, values = model.zoom.key_value(model.zoom.norm(tokens)).chunk(2, -1)
        reach, each = model.zoom.reach, model.zoom.key_value.out_features // 2
        rows = index[:, None] + torch.arange(-reach, reach + 1)
        inside = rows.clamp(min=0).clamp(max=tokens.shape[0] - 1)
        keys, values = (x.index_select(0, inside.flatten()).view(-1, 2 * reach + 1, each) for x in (keys, values))
        return Near(keys, values, BARRED * (rows != inside).unsqueeze(1))


@dataclass(frozen=True)
class Near:
    """Shallow keys and values around N tokens: (N, R, E) each; barred (N, 1, R), low beyond the ends."""

    keys: Tensor
    values: Tensor
    barred: Tensor


def run_layer(layer: nn.Module, tokens: Tensor, around: Band | Near) -> Tensor:
    """tokens: (N, D) -> (N, D)."""
    if isinstance(layer, TransformerLayer) and isinstance(around, Band):
        return transformer_layer(layer, tokens, around)
    assert isinstance(layer, ZoomLayer) and isinstance(around, Near)
    tokens = tokens + layer.look_branch(look(layer.look, layer.look_norm(tokens), around))
    return tokens + layer.feed_forward_branch(layer.feed_forward(layer.feed_forward_norm(tokens)))


def look(module: Look, tokens: Tensor, around: Near) -> Tensor:
    """tokens: (N, D) -> (N, D)."""
    each = module.query.out_features // module.heads
    query = (module.query(tokens) * each**-0.5).view(-1, module.heads, each)
    similarity = torch.matmul(query, around.keys.transpose(1, 2)) + (module.distance_bias + around.barred)
    return module.output(torch.matmul(similarity.softmax(-1), around.values).reshape(-1, module.heads * each))


def uncertainty(module: Uncertainty, tokens: Tensor, gradient: Tensor, positions: Tensor) -> Tensor:
    """tokens: (T, D), gradient: (T,) -> (T,)."""
    narrow = module.narrow(tokens)
    if isinstance(module.context, LocalConvolution):
        context = module.context(narrow[None], everywhere(narrow))[0]
    else:
        context = encode(module.context.layers, narrow, band(positions, LOCAL_WINDOW, True))  # type: ignore[arg-type]
    stacked = torch.cat((context, gradient.unsqueeze(-1), tokens), dim=-1)
    return module.head(stacked).squeeze(-1).clamp(-module.limit, module.limit)


def gradient_magnitude(features: Tensor, positions: Tensor) -> Tensor:
    """features: (T, F) -> (T,), zero at both ends, in units of its mean."""
    padded = F.pad(features, (0, 0, 1, 1))
    size = torch.linalg.vector_norm(padded[2:] - padded[:-2], dim=-1)
    size = size * ((positions > 0) & (positions < positions[-1]))
    return size / size.mean().clamp(min=1e-6)


def near_crossings(distances: Tensor, reach: int) -> Tensor:
    """As `models.depth.near_crossings`. distances: (T, K) -> (T,) boolean."""
    rising = ((distances[:-1] < 0) & (distances[1:] >= 0)).float().amax(-1)
    none = torch.zeros(1)
    crossing = torch.cat((rising, none)) + torch.cat((none, rising))
    return F.max_pool1d(crossing[None, None], 2 * reach + 1, 1, reach)[0, 0] > 0


def keep_highest(scores: Tensor, share: float) -> Tensor:
    """The `floor(share * T)` highest scores, (1, T) boolean. ONNX sorts ties by position, as the model does."""
    ranked = scores.sort(dim=1, descending=True).indices
    count = (torch.ones_like(scores).sum().double() * share + 1e-9).floor()
    chosen = torch.ones_like(scores).cumsum(1) <= count
    return torch.zeros_like(scores).scatter(1, ranked, chosen.float()) > 0


def hold(tau: Tensor, band: float) -> Tensor:
    """`models.depth.hold` without its loop, for up to 2 ** DOUBLINGS positions. tau: (T,) -> (T,).

    The value held from position j on lasts until the first position that leaves the band around tau[j]. Where that is
    follows from the extremes of stretches of 1, 2, 4, ... positions. Those positions, chained from the first one on,
    are the ones whose values are held; the chain is followed in steps of 1, 2, 4, ... links.
    """
    values = tau.double()
    count = values.shape[0]
    here = torch.arange(count)
    highest, lowest = [values], [values]
    for level in range(DOUBLINGS - 1):
        ahead = (here + 2**level).clamp(max=count - 1)  # beyond the end, the last value again: it changes nothing
        highest.append(torch.maximum(highest[-1], highest[-1].index_select(0, ahead)))
        lowest.append(torch.minimum(lowest[-1], lowest[-1].index_select(0, ahead)))
    leaves = here + 1
    for level in reversed(range(DOUBLINGS)):
        first = leaves.clamp(max=count - 1)
        above, below = highest[level].index_select(0, first) - values, values - lowest[level].index_select(0, first)
        stays = (above < band) & (below < band)
        leaves = leaves + 2**level * stays
    end = here[-1:] + 1  # one more position, where all chains stop
    following = torch.cat((torch.minimum(leaves, end), end))
    held = torch.cat(((here == 0).float(), torch.zeros(1)))
    for _ in range(DOUBLINGS):
        held = (held.scatter_add(0, following, held) > 0).float()
        following = following.index_select(0, following)
    anchors = held[:-1].nonzero().squeeze(1)
    return tau.index_select(0, anchors.index_select(0, held[:-1].cumsum(0).long() - 1))


def place(below: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    """`below`, (T, C), with `rows`, (N, C), in the places `index`, (N,); N may be 0."""
    columns = torch.zeros(int(below.shape[1]), dtype=torch.long)
    return below.scatter(0, index[:, None] + columns, rows)


def read(model: Uniform | TemporalZoom, tokens: Tensor) -> Reading:
    """What the heads say of tokens (T, D), and of the levels above them."""
    return model.heads(tokens[None], everywhere(tokens))


def everywhere(tokens: Tensor) -> Tensor:
    """The mask of a sequence without padding. (T, D) -> (1, T)."""
    return torch.ones_like(tokens[None, :, 0], dtype=torch.bool)


def raw_tensors(outputs: Outputs) -> tuple[Tensor, ...]:
    """Those of RAW_NAMES that the model has."""
    found = (getattr(outputs, name) for name in RAW_NAMES)
    return tuple(x for x in found if x is not None)
