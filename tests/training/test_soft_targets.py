"""Instances with scores: with scores of 1 nothing changes, to the last bit; below, closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.config import BDRConfig, Config, TrainingConfig, UniformSection, ZoomBenchData
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.models import Outputs
from temporalzoom.runs.network import model_from_config
from temporalzoom.segments import Segments
from temporalzoom.training.batches import Batch, collate, training_batch
from temporalzoom.training.crops import plain_crop
from temporalzoom.training.losses import focal_loss
from temporalzoom.training.objective import assign, count_positives, detection_maps, detection_terms, objective

BENCH = ZoomBenchData(source="zoombench", sequences=4, test_sequences=1, length=128)


def with_scores(split: Split, scores) -> Split:
    samples = []
    for sample in split.samples:
        s = sample.segments
        samples.append(replace(sample, segments=Segments(s.starts, s.ends, s.labels, np.resize(scores, len(s)))))
    return replace(split, samples=tuple(samples))


@pytest.fixture(scope="module")
def split() -> Split:
    found = load_data(BENCH, 0).train
    assert found is not None
    return found


def focal_before(logits, targets, alpha=0.25, gamma=2.0):
    """The focal loss as it was for targets of 0 and 1 alone."""
    probability = torch.sigmoid(logits)
    miss = (probability * (1 - targets) + (1 - probability) * targets).clamp(min=torch.finfo(logits.dtype).tiny)
    loss = F.binary_cross_entropy_with_logits(logits, targets, reduction="none") * miss**gamma
    return loss * (alpha * targets + (1 - alpha) * (1 - targets))


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_hard_targets_lose_what_they_lost_to_the_last_bit(gamma):
    random = torch.Generator().manual_seed(0)
    logits = torch.cat([6 * torch.randn(4000, generator=random), torch.tensor([-200.0, 200.0, 0.0, 90.0])])
    logits = logits.requires_grad_()
    targets = (torch.rand(len(logits), generator=random) < 0.3).float()
    results = []
    for loss in (focal_loss, focal_before):
        values = loss(logits, targets, gamma=gamma)
        results.append((values, *torch.autograd.grad(values.sum(), logits)))
    assert all(torch.equal(new, old) for new, old in zip(*results, strict=True))


@settings(deadline=None)
@given(st.floats(-12, 12), st.floats(0, 1), st.floats(0, 1), st.floats(0, 4))
def test_the_loss_of_a_soft_target_in_closed_form(logit, target, alpha, gamma):
    p = 1 / (1 + math.exp(-logit))
    entropy = -target * math.log(p) - (1 - target) * math.log1p(-p)
    weight = alpha * target + (1 - alpha) * (1 - target)
    found = focal_loss(*(torch.tensor(value, dtype=torch.float64) for value in (logit, target)), alpha, gamma)
    assert float(found) == pytest.approx(weight * abs(target - p) ** gamma * entropy, rel=1e-6, abs=1e-9)


@given(st.floats(0.02, 0.98))
def test_the_best_answer_is_the_target(target):
    best = torch.tensor(math.log(target / (1 - target)), dtype=torch.float64)
    goal = torch.tensor(target, dtype=torch.float64)
    assert float(focal_loss(best, goal)) == pytest.approx(0, abs=1e-12)
    assert all(float(focal_loss(best + move, goal)) > 1e-9 for move in (-0.3, 0.3))


@pytest.mark.parametrize(
    "training",
    [
        TrainingConfig(),
        TrainingConfig(box_loss="l1+giou", positives=None, quality_power=0.2),
        TrainingConfig(assignment="both"),
    ],
)
@pytest.mark.parametrize("levels", [1, 3])
def test_scores_of_one_change_nothing_to_the_last_bit(split, training, levels):
    config = Config(model=UniformSection(name="uniform-1", width=16, heads=2, levels=levels), training=training)
    torch.manual_seed(0)
    model = model_from_config(config, split.input_width, len(split.classes), split.samples[0].grid)
    batch = training_batch(split, 0, 0, 4, 96, config.bdr)
    assert all((scores == 1).all() for scores in batch.scores) and len(batch.scores) == 4
    results = []
    for one in (batch, replace(batch, scores=[])):
        model.zero_grad()
        torch.manual_seed(1)
        terms = objective(model(one.features, one.mask), one, config)
        torch.stack(list(terms.values())).sum().backward()
        results.append([*terms.values(), *(p.grad for p in model.parameters() if p.grad is not None)])
    assert len(results[0]) > 10 and all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def soft_batch(*scores: float) -> tuple[Outputs, Batch]:
    """Two instances, labels 0 and 1, in a row of 30 positions, and outputs that are undecided."""
    batch = Batch(
        torch.zeros(1, 30, 2), torch.ones(1, 30, dtype=torch.bool), [torch.tensor([2.0, 15.0])],
        [torch.tensor([9.0, 25.0])], [torch.tensor([0, 1])], scores=[torch.tensor(scores)] if scores else [],
    )  # fmt: skip
    return Outputs(torch.zeros(1, 30, 2), torch.full((1, 30, 2), 3.0), torch.zeros(1, 30, 2)), batch


def test_targets_boxes_and_their_number_follow_the_scores():
    training = TrainingConfig()
    outputs, hard = soft_batch()
    soft = soft_batch(1.0, 0.25)[1]
    matches = assign(outputs, hard, training)
    assert torch.equal(matches, assign(outputs, soft, training))
    first, second = ((matches == instance).sum().item() for instance in (0, 1))
    assert count_positives(matches, hard) == first + second
    assert count_positives(matches, soft) == first + 0.25 * second
    before, after = (detection_maps(outputs, matches, batch, training) for batch in (hard, soft))
    boxes = before["diou"] * torch.where(matches[matches >= 0] == 0, 1.0, 0.25)
    torch.testing.assert_close(after["diou"], boxes)
    # At p = 1/2: alpha-weighted |t - p|^2 log 2 of the label, and that of a background for the other one.
    loss = {t: (0.25 * t + 0.75 * (1 - t)) * (t - 0.5) ** 2 * math.log(2) for t in (0, 0.25, 1)}
    for instance, target in ((0, 1), (1, 0.25)):
        at = after["class"][matches == instance]
        torch.testing.assert_close(at, torch.full_like(at, loss[target] + loss[0]))
    terms = detection_terms(outputs, matches, soft, training)
    assert float(terms["diou"]) == pytest.approx(float(boxes.sum()) / (first + 0.25 * second))


def test_only_likely_instances_have_boundaries(split):
    """In the fields of BDR and in what pruning may not drop; all of them are learned as instances."""
    bdr = BDRConfig()
    sample = with_scores(split, [0.9, 0.3]).samples[0]
    likely = replace(sample, segments=sample.segments[sample.segments.scores >= 0.5])
    assert 0 < len(likely.segments) < len(sample.segments)
    made = [collate([plain_crop(s, 0, 128)], split.classes, bdr, reach=2, scales=(2,)) for s in (sample, likely)]
    assert torch.equal(made[0].distances, made[1].distances) and torch.equal(made[0].boundaries, made[1].boundaries)
    assert torch.equal(made[0].levels[0].distances, made[1].levels[0].distances)
    assert len(made[0].starts[0]) == len(sample.segments) == len(made[0].scores[0])
    assert made[0].scores[0].tolist() == pytest.approx(sample.segments.scores.tolist())


def test_crops_and_augmented_crops_keep_the_scores(split):
    from temporalzoom.config import AugmentConfig
    from temporalzoom.training.crops import Augmentation

    soft = with_scores(split, [1.0, 0.7, 0.2])
    augmentation = Augmentation(AugmentConfig(warp=0.2), soft.samples)
    for options in ({}, {"augmentation": augmentation}):
        batch = training_batch(soft, 0, 0, 4, 96, BDRConfig(), **options)
        assert {round(v, 3) for scores in batch.scores for v in scores.tolist()} == {1.0, 0.7, 0.2}
        assert [len(s) for s in batch.scores] == [len(s) for s in batch.starts]
        moved = batch.to(torch.device("cpu"))
        assert all(torch.equal(a, b) for a, b in zip(moved.scores, batch.scores, strict=True))
