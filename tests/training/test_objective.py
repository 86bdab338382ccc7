"""The objective: zero where it should be, weighted as configured, deaf to padding, able to learn."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.bdr import distance_targets
from temporalzoom.config import BDRConfig, Config, TrainingConfig, UniformSection
from temporalzoom.models import Outputs, Points, build_model
from temporalzoom.runs.network import distance_scales, model_from_config
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training.batches import Batch, training_batch
from temporalzoom.training.objective import VARIANCE_WEIGHT, RunningPositives, assign, detection_terms, objective

# A single level, and the losses that a slow reference is written for below.
PLAIN = {"box_loss": "l1+giou", "positives": None}
TERMS = ("class", "l1", "giou", "box_variance", "distance", "distance_variance")


def plain(**options) -> TrainingConfig:
    return TrainingConfig(**{**PLAIN, **options})


def settings_of(**sections) -> Config:
    return Config(**{"model": UniformSection(levels=1), "training": plain(), **sections})


def make_batch(rows, lengths, width=5, seed=0):
    """A batch of sequences; rows: per sequence a list of (start, end, label)."""
    longest = max(lengths)
    generator = torch.Generator().manual_seed(seed)
    columns = [[torch.tensor([float(i[k]) for i in row]) for row in rows] for k in (0, 1)]
    fields = [distance_targets(s, e, longest) for s, e in zip(*columns, strict=True)]
    return Batch(
        torch.randn(len(rows), longest, width, generator=generator),
        torch.arange(longest) < torch.tensor(lengths)[:, None],
        *columns,
        [torch.tensor([i[2] for i in row], dtype=torch.long) for row in rows],
        torch.stack(fields),
        torch.ones(len(rows), longest, 2),
    )


def random_outputs(batch, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    size = batch.mask.shape

    def normal(channels):
        return torch.randn(*size, channels, generator=generator)

    return Outputs(normal(classes), 5 * normal(2).abs() + 0.1, normal(2), 4 * normal(2), normal(2))


def perfect_outputs(batch, matches, classes=3):
    outputs = random_outputs(batch, classes)
    outputs.logits.fill_(-30.0)
    outputs.distances = batch.distances.clone()
    for b, t in (matches >= 0).nonzero().tolist():
        n = matches[b, t]
        outputs.logits[b, t, batch.labels[b][n]] = 30.0
        outputs.offsets[b, t] = torch.stack((t - batch.starts[b][n], batch.ends[b][n] - t))
    return outputs


def two_sequences():
    return make_batch([[(2.3, 9.1, 0), (12.0, 30.5, 2)], [(4.0, 6.0, 1)]], [40, 25])


@pytest.mark.parametrize("assignment", ["center", "hungarian", "both"])
def test_perfect_outputs_cost_nothing(assignment):
    batch, training = two_sequences(), plain(assignment=assignment)
    # An assignment that looks at predictions may choose other positions for perfect ones: ask until it is settled.
    outputs = random_outputs(batch)
    for _ in range(3):
        outputs = perfect_outputs(batch, assign(outputs, batch, training))
    terms = objective(outputs, batch, settings_of(training=training))
    for name in ("class", "l1", "giou", "distance"):
        assert float(terms[name]) == pytest.approx(0.0, abs=1e-5), name


def slow_detection_terms(outputs, batch, training):
    """Position by position: class, l1, giou, box_variance."""
    sums, positives = [0.0] * 4, 0
    matches = assign(outputs, batch, training)
    for b in range(len(batch.mask)):
        for t in range(int(batch.mask[b].sum())):
            n = int(matches[b, t])
            for c, logit in enumerate(outputs.logits[b, t].tolist()):
                p = 1 / (1 + math.exp(-logit))
                if n >= 0 and c == batch.labels[b][n]:
                    sums[0] -= 0.25 * (1 - p) ** 2 * math.log(p)
                else:
                    sums[0] -= 0.75 * p**2 * math.log(1 - p)
            if n < 0:
                continue
            positives += 1
            start, end = float(batch.starts[b][n]), float(batch.ends[b][n])
            left, right = outputs.offsets[b, t].tolist()
            errors = (left - (t - start), right - (end - t))
            sums[1] += (abs(errors[0]) + abs(errors[1])) / max(end - start, 1.0)
            overlap = max(min(t + right, end) - max(t - left, start), 0.0)
            hull, union = max(t + right, end) - min(t - left, start), left + right + end - start - overlap
            sums[2] += 1 - (overlap / union - (hull - union) / hull)
            for error, log_variance in zip(errors, outputs.offset_log_variance[b, t].tolist(), strict=True):
                sums[3] += VARIANCE_WEIGHT * 0.5 * 0.5 * (error**2 * math.exp(-log_variance) + log_variance)
    return [value / max(positives, 1) for value in sums]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["center", "hungarian", "both"]))
def test_detection_terms_equal_the_slow_reference(seed, assignment):
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(3):
        starts = 20 * torch.rand(int(torch.randint(4, (), generator=generator)), generator=generator)
        rows.append([(float(s), float(s) + 0.3 + i * 4.0, i) for i, s in enumerate(starts)])
    batch = make_batch(rows, [30, 22, 9], seed=seed)
    training = plain(assignment=assignment)
    outputs = random_outputs(batch, seed=seed)
    terms = detection_terms(outputs, assign(outputs, batch, training), batch, training)
    expected = slow_detection_terms(outputs, batch, training)
    assert [float(terms[name]) for name in TERMS[:4]] == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_the_weight_of_bdr_scales_its_own_term():
    batch = two_sequences()
    outputs = random_outputs(batch)
    before = objective(outputs, batch, settings_of())
    after = objective(outputs, batch, settings_of(bdr=BDRConfig(weight=3 * BDRConfig().weight)))
    assert tuple(before) == tuple(after) == TERMS
    for name in TERMS:
        assert float(after[name]) == pytest.approx((3 if name == "distance" else 1) * float(before[name]), rel=1e-5)


def test_without_bdr_there_are_no_distance_terms():
    batch = two_sequences()
    batch.distances = batch.distance_weights = None
    outputs = random_outputs(batch)
    outputs.distances = outputs.distance_log_variance = None
    assert tuple(objective(outputs, batch, settings_of(bdr=BDRConfig(enabled=False)))) == TERMS[:4]


@pytest.mark.parametrize("assignment", ["center", "hungarian", "both"])
def test_padding_is_not_heard(assignment):
    batch, training = two_sequences(), plain(assignment=assignment)
    outputs = random_outputs(batch).map(lambda x: x.requires_grad_())
    terms = objective(outputs, batch, settings_of(training=training))
    sum(terms.values()).backward()
    assert all(x.grad[~batch.mask].abs().max() == 0 for x in vars(outputs).values() if x is not None)
    other = random_outputs(batch, seed=1)
    valid, tensors = batch.mask.unsqueeze(-1), {n: x for n, x in vars(outputs).items() if x is not None}
    mixed = {n: torch.where(valid, x.detach(), getattr(other, n)) for n, x in tensors.items()}
    again = objective(Outputs(**mixed), batch, settings_of(training=training))
    for name in TERMS:
        assert float(again[name]) == pytest.approx(terms[name].item(), rel=1e-6), name


@pytest.mark.parametrize("assignment", ["center", "hungarian", "both"])
def test_sequences_without_instances_are_fine(assignment):
    batch = make_batch([[], []], [20, 3])
    outputs = random_outputs(batch).map(lambda x: x.requires_grad_())
    terms = objective(outputs, batch, settings_of(training=plain(assignment=assignment)))
    assert all(term.isfinite() for term in terms.values())
    assert [terms[name].item() for name in ("l1", "giou", "box_variance")] == [0, 0, 0]
    sum(terms.values()).backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in vars(outputs).values() if x is not None)


def test_both_assignments_together_hold_the_positives_of_each():
    batch, outputs = two_sequences(), random_outputs(two_sequences())
    found = {name: assign(outputs, batch, plain(assignment=name)) >= 0 for name in ("center", "hungarian")}
    both = assign(outputs, batch, plain(assignment="both")) >= 0
    assert torch.equal(both, found["center"] | found["hungarian"])


@pytest.mark.parametrize("window", [4, None])
@pytest.mark.parametrize("channels", [1, 2])
def test_gradients_reach_every_parameter(window, channels):
    torch.manual_seed(0)
    model = build_model("uniform-2", 5, 3, width=16, heads=2, window=window, distance_channels=channels)
    batch = two_sequences()
    batch.distances, batch.distance_weights = batch.distances[..., :channels], batch.distance_weights[..., :channels]
    sum(objective(model(batch.features, batch.mask), batch, settings_of()).values()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("assignment", ["center", "hungarian"])
def test_a_tiny_model_learns_one_sequence_by_heart(tiny_config, tiny_split, assignment):
    settings = ("model.width=32", "model.name=uniform-2")
    config = tiny_config(*settings, f"training.assignment={assignment}")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 1, 80, config.bdr)
    assert len(batch.starts[0]) > 1
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = []
    for _ in range(150):
        terms = objective(model(batch.features, batch.mask), batch, config)
        loss = sum(terms[name] for name in ("class", "l1", "giou", "distance"))
        optimizer.zero_grad()
        sum(terms.values()).backward()
        optimizer.step()
        history.append(loss.item())
    assert history[-1] < 0.2 * history[0]


# Detectors with points


def as_points(outputs, batch):
    """The same outputs, said to stand at points: one level, every offset allowed."""
    length = batch.mask.shape[1]
    ones = torch.ones(length)
    points = Points(torch.arange(length).float(), ones, 0 * ones, 1e4 * ones, batch.mask)
    return Outputs(outputs.logits, outputs.offsets, outputs.offset_log_variance, points=points)


def test_points_at_every_position_are_positions():
    # no boundary on a position: a point on it is not inside, a position is
    batch = make_batch([[(2.3, 9.1, 0), (12.2, 30.5, 2)], [(4.2, 6.1, 1)]], [40, 25])
    training = plain()
    outputs = random_outputs(batch)
    assert torch.equal(assign(as_points(outputs, batch), batch, training), assign(outputs, batch, training))
    one, other = (
        objective(o, batch, settings_of(bdr=BDRConfig(enabled=False))) for o in (outputs, as_points(outputs, batch))
    )
    assert {name: float(v) for name, v in one.items()} == {name: float(v) for name, v in other.items()}


def test_offsets_by_class_are_those_of_the_instance():
    batch, training = two_sequences(), plain(box_loss="diou")
    outputs = random_outputs(batch)
    matches = assign(outputs, batch, training)
    by_class = outputs.offsets[:, :, None].repeat(1, 1, 3, 1) + 50.0
    for b, t in (matches >= 0).nonzero().tolist():
        by_class[b, t, batch.labels[b][matches[b, t]]] = outputs.offsets[b, t]
    same = Outputs(outputs.logits, by_class, outputs.offset_log_variance)
    first, second = (detection_terms(o, matches, batch, training) for o in (outputs, same))
    assert float(first["diou"]) == float(second["diou"]) and "l1" not in first


def test_quality_weighs_the_classes_of_positives_by_their_overlap():
    batch = two_sequences()
    outputs = random_outputs(batch)
    matches = assign(outputs, batch, plain())
    exact = perfect_outputs(batch, matches)
    exact.logits = outputs.logits
    unweighted, weighted = plain(), plain(quality_power=0.5)
    assert float(detection_terms(exact, matches, batch, weighted)["class"]) == pytest.approx(
        float(detection_terms(exact, matches, batch, unweighted)["class"])
    )
    assert (
        detection_terms(outputs, matches, batch, weighted)["class"]
        < (detection_terms(outputs, matches, batch, unweighted)["class"])
    )


def test_losses_are_per_running_mean_of_positives():
    batch = two_sequences()
    outputs, config = random_outputs(batch), settings_of()
    count = int((assign(outputs, batch, config.training) >= 0).sum())
    running = RunningPositives(100.0)
    plain, divided = objective(outputs, batch, config), objective(outputs, batch, config, positives=running)
    assert float(running.mean) == pytest.approx(90 + 0.1 * count)
    assert float(divided["class"]) == pytest.approx(float(plain["class"]) * count / float(running.mean))
    assert float(divided["distance"]) == float(plain["distance"])


@pytest.mark.parametrize("model", ["temporalmaxer", "uniform-1", "tzn"])
@pytest.mark.parametrize(("kind", "power"), [("one", 0.0), ("sqrt", 0.5), ("inverse", 1.0)])
def test_every_scale_has_its_weight(model, kind, power, tiny_config, tiny_split):
    """Distances that are off by exactly one stride everywhere cost the sum of the weights."""
    words = [
        f"model.name={model}",
        "model.levels=3",
        f"bdr.scales={kind}",
    ]
    config = tiny_config(*words)
    scales = distance_scales(config)
    assert scales == (1, 2, 4)
    batch = training_batch(tiny_split, 0, 0, 2, 50, config.bdr, scales=scales)
    outputs = model_from_config(config, 8, 2, TimeGrid(4, 8, 30)).train()(batch.features, batch.mask)
    targets = torch.cat([level.distances for level in batch.levels], 1)
    assert outputs.level_distances.shape == targets.shape
    outputs.level_distances = targets + 1.0
    expected = config.bdr.weight * sum(scale**-power for scale in scales)
    assert float(objective(outputs, batch, config)["distance"]) == pytest.approx(expected, rel=1e-5)
