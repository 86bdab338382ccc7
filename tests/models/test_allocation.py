"""Controls of adaptive depth: each runs where it says, at the share of the others."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.models import TemporalZoom
from temporalzoom.models.allocation import distance_to, shuffled, spaced
from temporalzoom.models.depth import keep_highest

CONTROLS = ["random", "regular", "oracle"]


def make(allocation, seed=0, **options) -> TemporalZoom:
    torch.manual_seed(seed)
    chosen = {"width": 16, "heads": 2, "window": 5, "deep_layers": 3, "distance_channels": 2, "zoom": 4, "share": 0.3}
    return TemporalZoom(6, 3, allocation=allocation, **(chosen | options)).eval()


def inputs(lengths, seed=0):
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), 6) * mask[..., None], mask


def truth_of(mask):
    marked = torch.zeros_like(mask)
    marked[:, 10:12] = True
    return marked & mask


@torch.no_grad()
@pytest.mark.parametrize("allocation", CONTROLS)
@pytest.mark.parametrize("head", ["mlp", "convolution"])
@given(st.lists(st.integers(12, 70), min_size=1, max_size=4), st.floats(0, 1))
@settings(max_examples=10)
def test_what_runs_is_the_share_and_dense_execution_agrees(allocation, head, lengths, budget):
    sparse, dense = (make(allocation, budget=budget, head=head, execution=e) for e in ("sparse", "dense"))
    entered: list[int] = []
    for layer in sparse.deep:
        layer.register_forward_pre_hook(lambda _, arguments: entered.append(arguments[0].shape[1]))
    features, mask = inputs(lengths)
    first, second = (m(features, mask, truth_of(mask)) for m in (sparse, dense))
    assert first.depth.active.sum(1).tolist() == [int(budget * n + 1e-9) for n in lengths]
    assert entered == ([int(first.depth.active.sum())] * 3 if first.depth.active.any() else [])
    for name in ("logits", "offsets", "distances"):
        torch.testing.assert_close(getattr(first, name)[mask], getattr(second, name)[mask], rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("allocation", CONTROLS)
def test_a_batch_gives_what_its_sequences_give_alone(allocation):
    model, (features, mask) = make(allocation, seed=3), inputs([60, 33])
    together = model(features, mask, truth_of(mask))
    alone = model(features[1:, :33], mask[1:, :33], truth_of(mask)[1:, :33])
    assert torch.equal(together.depth.active[1, :33], alone.depth.active[0])
    torch.testing.assert_close(together.logits[1, :33], alone.logits[0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_random_positions_are_those_of_the_seed():
    features, mask = inputs([200])

    def with_seed(seed):
        torch.manual_seed(0)
        model = TemporalZoom(6, 3, width=16, heads=2, allocation="random", seed=seed, share=0.3, zoom=4).eval()
        return model(features, mask).depth.active

    assert torch.equal(with_seed(1), with_seed(1)) and not torch.equal(with_seed(1), with_seed(2))
    drawn = torch.stack([shuffled(mask, seed)[0] for seed in range(200)])
    assert drawn.min() >= 0 and drawn.max() <= 1
    assert (keep_highest(drawn, mask.expand(200, -1), 0.3).float().mean(0) - 0.3).abs().max() < 0.15  # no favourites
    joint = np.corrcoef(drawn.numpy()[:, :30].T) - np.eye(30)
    assert abs(joint).max() < 0.4


@given(st.integers(1, 300), st.floats(0.01, 1))
@settings(max_examples=60)
def test_regular_positions_are_equally_far_apart(length, share):
    marked = spaced(torch.ones(1, length, dtype=torch.bool), share)[0].nonzero()[:, 0]
    assert len(marked) == pytest.approx(share * length, abs=1 + 1e-3)
    gaps = np.diff(marked.numpy())
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_the_oracle_takes_the_positions_nearest_to_a_boundary():
    marked = torch.zeros(1, 20, dtype=torch.bool)
    marked[0, [4, 15]] = True
    slow = [min(abs(i - 4), abs(i - 15)) for i in range(20)]
    assert distance_to(marked)[0].tolist() == slow
    assert distance_to(torch.zeros(1, 5, dtype=torch.bool)).tolist() == [[5.0] * 5]
    model, (features, mask) = make("oracle", share=0.3), inputs([20])
    with torch.no_grad():
        active = model(features, mask, marked).depth.active[0].nonzero()[:, 0].tolist()
        with pytest.raises(ValueError, match="true boundaries"):
            model(features, mask)
    assert active == [3, 4, 5, 14, 15, 16]


@torch.no_grad()
@pytest.mark.parametrize("head", ["mlp", "convolution"])
def test_no_depth_is_the_shallow_network_alone(head):
    model, (features, mask) = make("none", head=head), inputs([40, 30])
    outputs = model(features, mask)
    assert len(model.deep) == 0 and model.zoom is None and model.predictor is None and not outputs.depth.active.any()
    trained = make("tau", head=head)
    trained.allocation = "none"  # at inference only, of a network that has depth
    before = trained(features, mask)
    trained.allocation, trained.budget = "tau", 0.0
    torch.testing.assert_close(before.logits, trained(features, mask).logits)


@torch.no_grad()
def test_positions_of_a_trained_network_can_be_exchanged():
    model, (features, mask) = make("tau"), inputs([80])
    everything = make("tau", depth=False)
    everything.load_state_dict(model.state_dict(), strict=False)
    model.allocation, model.budget = "regular", 0.25
    some, whole = model(features, mask), everything(features, mask)
    active = some.depth.active
    assert int(active.sum()) == 20
    torch.testing.assert_close(some.logits[active], whole.logits[active], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("allocation", [*CONTROLS, "none"])
def test_training_tries_depth_everywhere_and_reads_it_where_it_is_allocated(allocation):
    model, (features, mask) = make(allocation).train(), inputs([50, 40])
    outputs = model(features, mask, truth_of(mask))
    depth = outputs.depth
    assert torch.equal(depth.tried, mask if allocation != "none" else torch.zeros_like(mask))
    assert (depth.deep is None) == (allocation == "none")
    idle = mask & ~depth.active
    torch.testing.assert_close(outputs.logits[idle], depth.shallow.logits[idle])
    if depth.deep is not None:
        torch.testing.assert_close(outputs.logits[depth.active], depth.deep.logits[depth.active])
