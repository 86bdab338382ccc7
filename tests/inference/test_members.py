"""Several networks as one: how what they find is fused, and a run that holds them."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console

from temporalzoom.config import change_inference
from temporalzoom.datasets.samples import Split
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.members import fuse_members
from temporalzoom.metrics.pairs import tiou
from temporalzoom.runs.checkpoint import find_checkpoint
from temporalzoom.runs.members import FILE, Members, read_members, write_members
from temporalzoom.segments import Segments
from temporalzoom.training import train
from temporalzoom.workflows.export import export_onnx


def found(*rows: tuple[float, float, str, float]) -> Segments:
    return Segments(*zip(*rows, strict=True)) if rows else Segments.empty()


def test_two_that_agree_are_averaged_by_score():
    fused = fuse_members([found((0, 10, "run", 0.9)), found((1, 13, "run", 0.3))])
    np.testing.assert_allclose(fused.starts, [0.25])  # (0.9 * 0 + 0.3 * 1) / 1.2
    np.testing.assert_allclose(fused.ends, [10.75])
    np.testing.assert_allclose(fused.scores, [0.6])  # (0.9 + 0.3) / 2


def test_what_only_one_of_three_finds_falls_behind():
    alone, agreed = (0, 10, "run", 0.9), (20, 30, "run", 0.5)
    fused = fuse_members([found(alone, agreed), found(agreed), found(agreed)])
    assert fused.starts.tolist() == [20, 0]
    np.testing.assert_allclose(fused.scores, [0.5, 0.3])


def test_labels_are_never_mixed_and_a_member_speaks_once_about_an_instance():
    copies = found((0, 10, "run", 0.8), (1, 11, "run", 0.4))
    fused = fuse_members([copies, found((0, 10, "sit", 0.6))])
    assert fused.labels.tolist() == ["run", "sit", "run"]
    np.testing.assert_allclose(fused.scores, [0.4, 0.3, 0.2])
    np.testing.assert_allclose(fused.starts, [0, 0, 1])  # the copy moves nothing


def test_nothing_and_one_member():
    assert len(fuse_members([])) == len(fuse_members([Segments.empty(), Segments.empty()])) == 0
    one = found((0, 10, "run", 0.2), (5, 9, "sit", 0.7))
    assert fuse_members([one]) == one.sort("score")
    assert fuse_members([one], min_score=0.5).labels.tolist() == ["sit"]


segments = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 20), st.sampled_from("ab"), st.integers(1, 100)), max_size=12
).map(lambda rows: found(*((start, start + length, label, score / 100) for start, length, label, score in rows)))


def slow_fusion(members: list[Segments], threshold: float) -> list[tuple[str, float, float, float]]:
    """The definition, one segment after the other, with lists."""
    rows = [(s, n, row) for n, member in enumerate(members) for s, row in zip(member.scores, member, strict=True)]
    clusters: list[dict] = []
    for label in sorted({row[2] for *_, row in rows}):
        of_class = sorted((item for item in rows if item[2][2] == label), key=lambda item: -item[0])
        mine: list[dict] = []
        for score, member, (start, end, *_) in of_class:
            overlaps = [
                0.0 if member in c["spoken"] else float(tiou([c["start"]], [c["end"]], [start], [end])[0, 0])
                for c in mine
            ]
            best = max(range(len(mine)), key=lambda i: (overlaps[i], -i)) if mine else None
            # Of two clusters that overlap it alike, the last bit of their averaged ends would decide.
            assume(sum(abs(other - overlaps[best]) < 1e-9 for other in overlaps if other) < 2)
            if best is None or overlaps[best] < threshold:
                mine.append({"label": label, "parts": [], "start": start, "end": end, "spoken": set()})
                best = len(mine) - 1
            cluster = mine[best]
            cluster["parts"].append((score, start, end))
            total = sum(part[0] for part in cluster["parts"])
            cluster["start"] = sum(w * s for w, s, _ in cluster["parts"]) / total
            cluster["end"] = sum(w * e for w, _, e in cluster["parts"]) / total
            cluster["spoken"].add(member)
        clusters += mine
    totals = [sum(part[0] for part in c["parts"]) / len(members) for c in clusters]
    fused = [(c["label"], total, c["start"], c["end"]) for c, total in zip(clusters, totals, strict=True)]
    return sorted(fused)


# No share of whole numbers is just at the threshold, where the last bit would decide.
@given(st.lists(segments, min_size=2, max_size=4), st.sampled_from([0.30001, 0.60001, 0.90001]))
def test_fusion_is_its_definition(members, threshold):
    fused = fuse_members(members, threshold)
    assert (np.diff(fused.scores) <= 0).all()
    got = sorted(zip(fused.labels.tolist(), fused.scores, fused.starts, fused.ends, strict=True))
    expected = slow_fusion(members, threshold)
    assert [row[0] for row in got] == [row[0] for row in expected]
    np.testing.assert_allclose(np.array([row[1:] for row in got]), np.array([row[1:] for row in expected]), atol=1e-6)


@given(st.lists(segments, min_size=2, max_size=4))
def test_fused_segments_lie_within_what_was_found_and_score_no_higher(members):
    fused, everything = fuse_members(members), Segments.concatenate(members)
    if len(everything):
        assert fused.starts.min() >= everything.starts.min() - 1e-9 and fused.ends.max() <= everything.ends.max() + 1e-9
        assert fused.scores.max() <= everything.scores.max() + 1e-12
    assert set(fused.labels.tolist()) == set(everything.labels.tolist())


@given(segments, st.integers(2, 4))
def test_members_that_agree_are_as_one_where_nothing_is_clustered(member, count):
    distinct = fuse_members([member, member], 1.0)  # equal segments only
    fused = fuse_members([distinct] * count, 1.0)
    assert sorted(fused.labels.tolist()) == sorted(distinct.labels.tolist())
    np.testing.assert_allclose(np.sort(fused.scores), np.sort(distinct.scores))
    np.testing.assert_allclose(np.sort(fused.starts), np.sort(distinct.starts))


# A run of members


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_split, tiny_config):
    """Two networks, of different seeds."""
    folder = tmp_path_factory.mktemp("fitted")
    split = Split(tiny_split.samples[:3], tiny_split.classes)
    settings = ("model.name=uniform-2", "model.window=4", "training.steps=3", "inference.certainty=0")
    for seed in (0, 1):
        config = tiny_config(*settings, f"seed={seed}")
        train(config, split, folder / "members" / str(seed), console=Console(quiet=True))
    write_members(folder, Members(("members/0", "members/1"), {tiny_split.classes[0]: 0.0}, 0.6))
    return folder


def test_a_run_of_members_is_loaded_as_one(run, tiny_split):
    features = tiny_split.samples[0].features
    both = Localizer.load(run)
    parts = [Localizer.load(run / "members" / str(seed))(features, threshold=0) for seed in (0, 1)]
    expected = fuse_members(parts, 0.6, both.options.min_score)
    assert len(both.members) == 2 and len(expected) > 3
    assert both(features, threshold=0) == expected
    assert parts[0] != parts[1]


def test_a_threshold_that_is_set_for_a_fused_run_is_used(run, tiny_split):
    both, features = Localizer.load(run), tiny_split.samples[0].features
    everything = both(features, threshold=0)
    middle = float(np.median(everything.scores))
    for setting, label in ((f"{middle}", None), (f"{{{both.classes[0]}: {middle}}}", both.classes[0])):
        both.options = change_inference(Localizer.load(run).options, [f"inference.threshold={setting}"])
        low = [s for s in both(features) if s[3] < middle and label in (None, s[2])]
        assert not low and 0 < len(both(features)) < len(everything)


def test_what_needs_one_network_names_them(run, tiny_split):
    with pytest.raises(InputError, match=r"holds 2 networks.*members/0.*members/1"):
        find_checkpoint(run)
    with pytest.raises(InputError, match="holds 2 networks"):
        export_onnx(run, run / "model.onnx")
    with pytest.raises(InputError, match="2 members have no common raw outputs"):
        Localizer.load(run).outputs(tiny_split.samples[0].features)


def test_description_of_members_on_disk(tmp_path):
    members = Members(("members/a", "members/b"), {"run": 0.25}, 0.6)
    write_members(tmp_path, members)
    assert read_members(tmp_path) == members
    assert read_members(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    "change",
    [{"folders": []}, {"folders": ["../other"]}, {"folders": ["/etc"]}, {"format": 9}, {"tiou": 0}, {"thresholds": 3}],
)
def test_a_description_that_makes_no_sense_is_refused(tmp_path, change):
    write_members(tmp_path, Members(("members/a",), {"run": 0.25}, 0.6))
    values = json.loads((tmp_path / FILE).read_text()) | change
    (tmp_path / FILE).write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"members\.json"):
        read_members(tmp_path)
