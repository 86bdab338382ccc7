"""Coarser levels above uniform and tzn: the finest level stays what it was, padding never leaks, depth still saves."""

from dataclasses import replace

import pytest
import torch

from temporalzoom.errors import InputError
from temporalzoom.models import build_model
from temporalzoom.models.coarse_to_fine import pooled_levels
from temporalzoom.runs.network import model_from_config
from temporalzoom.training.objective import objective

SMALL = {"width": 16, "heads": 2, "window": 3, "distance_channels": 2}


def pair(name, **options):
    """The same encoder with one level and with four."""
    torch.manual_seed(0)
    several = build_model(name, 5, 3, **SMALL, levels=4, **options).eval()
    single = build_model(name, 5, 3, **SMALL, **options).eval()
    single.load_state_dict({key: several.state_dict()[key] for key in single.state_dict()})
    return single, several


@pytest.mark.parametrize("name", ["uniform-2", "tzn"])
@torch.no_grad()
def test_the_finest_level_is_the_encoder_as_it_was(name):
    single, several = pair(name)
    features, mask = torch.randn(2, 37, 5), torch.ones(2, 37, dtype=torch.bool)
    before, after = single(features, mask), several(features, mask)
    assert after.points.positions.tolist() == [float(p) for s in (1, 2, 4, 8) for p in range(0, 37, s)]
    assert torch.equal(after.logits[:, :37], before.logits) and torch.equal(after.offsets[:, :37], before.offsets)
    assert torch.equal(after.distances, before.distances)
    assert after.offset_log_variance.shape == (2, len(after.points.positions), 2)


@pytest.mark.parametrize("coarse_layers", [0, 2])
@pytest.mark.parametrize("head", ["mlp", "convolution"])
@pytest.mark.parametrize("name", ["uniform-2", "tzn"])
@torch.no_grad()
def test_padding_never_leaks(name, head, coarse_layers):
    torch.manual_seed(0)
    model = build_model(name, 5, 3, **SMALL, levels=4, head=head, coarse_layers=coarse_layers).eval()
    features = torch.randn(1, 21, 5)
    alone = model(features, torch.ones(1, 21, dtype=torch.bool))
    both = model(torch.cat((features, torch.full((1, 12, 5), 7.0)), 1), torch.arange(33)[None] < 21)
    valid = both.points.valid[0]
    torch.testing.assert_close(both.logits[:, valid], alone.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(both.offsets[:, valid], alone.offsets, atol=1e-4, rtol=1e-5)


@torch.no_grad()
def test_offsets_count_strides_of_their_level():
    """A box head that says the same everywhere reaches twice as far on every level."""
    _, model = pair("uniform-1")
    model.heads.coarse.box.last.weight.zero_()
    outputs = model(torch.randn(1, 16, 5), torch.ones(1, 16, dtype=torch.bool))
    coarse, strides = slice(16, None), outputs.points.strides[16:]
    torch.testing.assert_close(outputs.offsets[0, coarse, 0], strides / 2 * outputs.offsets[0, 16, 0])
    spread = outputs.offset_log_variance[0, coarse, 0].exp().sqrt()
    torch.testing.assert_close(spread, strides / 2 * spread[0])


@pytest.mark.parametrize("coarse_layers", [0, 1])
@torch.no_grad()
def test_sparse_and_dense_execution_agree_with_levels(coarse_layers):
    torch.manual_seed(0)
    options = {**SMALL, "levels": 3, "coarse_layers": coarse_layers, "budget": 0.3}
    dense = build_model("tzn", 5, 3, **options, execution="dense").eval()
    sparse = build_model("tzn", 5, 3, **options, execution="sparse").eval()
    sparse.load_state_dict(dense.state_dict())
    features, mask = torch.randn(2, 60, 5), torch.ones(2, 60, dtype=torch.bool)
    one, other = dense(features, mask), sparse(features, mask)
    assert 0 < float(one.depth.active.float().mean()) < 1
    torch.testing.assert_close(one.logits, other.logits, atol=1e-4, rtol=1e-4)
    part = sparse(features[:1], mask[:1]).part(10, 30, 100)
    assert part.depth.tau.shape == (20,) and part.points.positions.min() == 110 and len(part.distances) == 20


@torch.no_grad()
def test_convolutions_read_each_level_as_if_it_were_alone():
    """All levels are read as one sequence; the same heads, level by level, say the same."""
    torch.manual_seed(0)
    heads = build_model("uniform-1", 5, 3, **SMALL, levels=4, head="convolution").eval().heads
    tokens, mask = torch.randn(2, 21, 16), torch.arange(21)[None] < torch.tensor([[21], [13]])
    levels = pooled_levels(tokens, mask, 4)
    together = heads(levels)
    assert together.finest.logits.shape == (2, 21, 3) and together.coarser.logits.shape == (2, 11 + 6 + 3, 3)
    rows = torch.cat((together.finest.offsets, together.coarser.offsets), 1)
    for level in heads.all_levels.normed(levels):
        all_levels = heads.all_levels
        first = torch.relu(all_levels.first_norm(all_levels.first_convolution(level.tokens)))
        box = all_levels.box(replace(level, tokens=first * level.mask.unsqueeze(-1)))
        alone, rows = rows[:, : box.shape[1]], rows[:, box.shape[1] :]
        torch.testing.assert_close(alone, level.stride * box[..., :2].exp(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("head", [("model.shallow_layers=2",), ("model.head=convolution",)])
def test_a_training_step_of_tzn_with_levels_has_every_term(tiny_config, tiny_split, head):
    from temporalzoom.training.batches import training_batch

    config = tiny_config("model.name=tzn", "model.levels=4", "model.zoom=4", *head)
    model = model_from_config(config, 8, 2, tiny_split.samples[0].grid).train()
    for part in (model.heads.classes, model.heads.box):  # corrections start from zero, and so do gradients before them
        torch.nn.init.normal_(part[-1].weight)
    batch = training_batch(tiny_split, 0, 0, 2, 50, config.bdr)
    terms = objective(model(batch.features, batch.mask), batch, config)
    assert {"class", "giou", "distance", "shallow", "deep", "depth"} <= set(terms)
    torch.stack(list(terms.values())).sum().backward()
    silent = [name for name, p in model.heads.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not [name for name in silent if "distance_bias" not in name]


def test_other_ways_to_assign_need_a_single_level(tiny_config):
    setting = "training.assignment=hungarian"
    for several in ("model.levels=2", "model.name=temporalmaxer"):
        with pytest.raises(InputError, match=r"training\.assignment: has no effect here: of several levels"):
            tiny_config(several, setting)
    assert tiny_config(setting).training.assignment == "hungarian"
