"""Products in half precision: every network runs with them, and says nearly the same."""

import numpy as np
import pytest
import torch

from temporalzoom.inference.windows import run_network
from temporalzoom.models import build_model

NETWORKS = {
    "uniform-2": {},
    "uniform-2 with levels": {"levels": 3},
    "uniform-2 with convolutions": {"levels": 3, "head": "convolution"},
    "uniform-2 with global attention": {"window": None},
    "tzn": {},
    "tzn with convolutions": {"levels": 3, "head": "convolution"},
    "tzn that sees active ones": {"zoom": 0},
    "tzn of layers": {"combine": "layers"},
    "tzn of features": {"combine": "features"},
    "tzn of logits": {"combine": "logits"},
    "tzn with attention around": {"context": "attention"},
    "actionformer": {},
    "tridet": {},
    "temporalmaxer": {},
    "bmn": {"durations": 8, "samples": 4},
}
FIELDS = ("logits", "offsets", "distances", "offset_log_variance", "distance_log_variance")


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(0).normal(size=(60, 10)).astype(np.float32)


@pytest.mark.parametrize("name", NETWORKS)
def test_half_precision_says_nearly_the_same(name, features):
    torch.manual_seed(0)
    options = {"width": 16, **NETWORKS[name]}
    kind = name.split(" ")[0]
    if kind.startswith(("uniform", "tzn")):
        options["distance_channels"] = 2
    if kind == "tzn":  # all go deep: near the threshold, rounding would send other positions there
        options |= {"shallow_layers": 1, "deep_layers": 2, "budget": 1.0, "keep": 1.0}
    model = build_model(kind, 10, 3, **options).eval()
    if options.get("combine") == "logits":  # as after training: normalized, logits that are all alike are but rounding
        torch.nn.init.normal_(model.heads.classes[-1].weight)
    exact, rough = (run_network(model, features, 40, precision=p) for p in ("float32", "bfloat16"))
    differ = False
    for field in FIELDS:
        expected, found = getattr(exact, field), getattr(rough, field)
        assert (expected is None) == (found is None)
        if expected is None:
            continue
        assert found.dtype == torch.float32
        error = (found - expected).abs().mean()
        differ |= bool(error > 0)
        assert error < 0.02 * (1 + expected.abs().mean())
    assert differ  # else it was float32 after all
