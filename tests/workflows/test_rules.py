"""The rules of fit: what they choose for odd data, and that every choice can be trained with."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.config import load_config, parse_config
from temporalzoom.datasets.fingerprint import PERCENTILES, Fingerprint
from temporalzoom.segments import Segments
from temporalzoom.workflows.fit_time import CHOICES, STEP_LIMITS, Affordable, affordable
from temporalzoom.workflows.rules import (
    LARGEST_STRIDE,
    ROWS_PER_STEP,
    STEMS,
    make_plan,
    plan_text,
    stem_for,
    stride_for,
    video_stride,
)


def data(rate=50.0, shortest=3.0, longest=30.0, seconds=18_000.0, recording=360.0, channels=6, kinds=None, missing=0.0):
    durations = tuple(shortest + (longest - shortest) * p / 100 for p in PERCENTILES)
    return Fingerprint(
        recordings=30,
        subjects=10,
        seconds=seconds,
        lengths=(recording,) * len(PERCENTILES),
        rates=(rate, rate),
        channels=channels,
        kinds=kinds or {"other": channels},
        missing=missing,
        spread=0.1,
        instances={"a": 50, "b": 50},
        durations=durations,
        shortest=shortest,
        gaps=(1.0,) * len(PERCENTILES),
        overlapping=0.0,
        covered=0.3,
        annotation_step=None,
    )


def config_of(plan, member=0):
    changes = [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in plan.settings(member).items()
    ]
    return load_config(None, ["data.annotations=a.json", "data.features=f", *changes])


def test_strides_of_known_data():
    assert stride_for(data(shortest=2.57)) == 30  # phones at the waist: 0.6 s
    assert stride_for(data(rate=102.4, shortest=1.1)) == 25
    assert stride_for(data(rate=30.0, shortest=0.42)) == 3
    assert stride_for(data(rate=10.0, shortest=0.05)) == 1  # shorter than a row
    assert stride_for(data(rate=1000.0, shortest=1200.0)) == LARGEST_STRIDE
    assert stride_for(data(channels=512, kinds={"feature": 512})) == 1


@given(
    st.floats(0.1, 5000), st.floats(0.01, 3000), st.floats(1, 50), st.floats(2, 20_000), st.integers(1, 80),
    st.integers(1, 5), st.booleans(),
)  # fmt: skip
def test_whatever_the_data_the_plan_is_a_configuration(rate, shortest, ratio, recording, channels, members, gaps):
    found = data(
        rate, shortest, shortest * ratio, 20 * recording, recording, channels,
        {"acceleration": channels} if channels % 3 == 0 else None, 0.1 * gaps,
    )  # fmt: skip
    plan = make_plan(found, members)
    for member in range(members):
        config = config_of(plan, member)
        assert config.data.stride == config.data.window
        assert tuple(config.model.stem) == STEMS[int(config.data.stride)]
        assert config.training.length * config.training.batch_size <= 4096 + 32
        rows = config.training.length * config.training.batch_size * config.data.stride
        assert rows <= 2 * ROWS_PER_STEP or config.training.batch_size == 1  # a coarser member has more of them
    assert len({plan.settings(member)["seed"] for member in range(members)}) == members
    tree = yaml.safe_load(plan_text(plan, ["what was found"], {"data.features": "signals"}))
    assert parse_config(tree, source="plan").data.stride == plan.settings(0)["data.stride"]


def test_stems_make_their_strides():
    assert all(int(np.prod(strides)) == rows for rows, strides in STEMS.items())
    assert max(STEMS) == LARGEST_STRIDE


def test_long_instances_at_a_high_rate_fit_into_a_crop():
    found = data(rate=1000.0, shortest=1200.0, longest=1300.0, recording=5 * 3600.0)
    config = config_of(make_plan(found))
    assert 1200 * 1000 / config.data.stride < config.training.length <= 1024


def test_reasons_stand_beside_the_lines_and_a_user_has_the_last_word():
    plan = make_plan(data(kinds={"acceleration": 3, "rotation": 3}), 3).replaced("training.steps", 77)
    text = plan_text(plan, ["30 recordings"])
    assert text.startswith("# 30 recordings\n") and "steps: 77" in text and "# given by the user" in text
    assert all("#" in line for line in text.splitlines() if line.startswith("  "))
    assert plan.settings(2)["training.steps"] == 77
    assert plan.settings(0)["augment.rotate"] == 15.0


def test_members_differ_in_how_they_see_time_and_what_they_are():
    plan = make_plan(data(), 5)
    kinds = {(plan.settings(m).get("model.name"), plan.settings(m)["data.stride"]) for m in range(5)}
    assert len(kinds) >= 4


def test_what_moves_slowly_is_seen_with_its_derivatives_by_two_of_three():
    def views(found, **options):
        plan = make_plan(found, 3, **options)
        return [plan.settings(member).get("data.derivatives", False) for member in range(3)]

    assert views(data()) == [True, False, True]
    assert not any(views(data(kinds={"acceleration": 3, "rotation": 3})))
    assert not any(views(data(channels=512, kinds={"feature": 512})))
    assert not any(views(data(), keypoints=True)) and not any(views(data(), framed=True))


def test_features_of_videos_keep_their_own_grid():
    plan = make_plan(data(rate=5.0, channels=400, kinds={"feature": 400}), 3, framed=True)
    assert not [key for member in range(3) for key in plan.settings(member) if key.startswith("data.")]
    segments = Segments([0, 10, 20, 30, 40], [1.8, 11.8, 21.8, 31.8, 41.8], ["a"] * 5)
    assert video_stride(25.0, [segments]) == 10
    assert video_stride(25.0, [Segments([0] * 5, [0.01] * 5, ["a"] * 5)]) == 1


def test_folds_are_no_more_than_subjects():
    assert make_plan(data(), 3).folds == 5
    assert make_plan(replace(data(), subjects=3), 3).folds == 3
    assert make_plan(replace(data(), subjects=None), 3, groups=2).folds == 2


@pytest.mark.parametrize(
    ("each", "members", "seconds", "expected"),
    [
        (0.1, None, None, (5, None)),  # 5 x 100 s on two cores
        (0.3, None, None, (3, None)),
        (0.6, None, None, (1, None)),
        (2.0, None, None, (3, None)),  # nothing fits: as planned
        (0.1, 3, None, (3, None)),
        (0.1, None, 600.0, (5, None)),
        (0.1, None, 100.0, (3, 400)),
        (0.1, 5, 60.0, (5, STEP_LIMITS[0])),
        (1.0, None, 60.0, (1, STEP_LIMITS[0])),
    ],
)
def test_what_fits_into_the_time(each, members, seconds, expected):
    found = affordable(each, 1000, members, seconds, 900.0, 2)
    assert (found.members, found.steps) == expected


def test_a_student_takes_a_round_of_its_own():
    assert affordable(0.125, 1000, 3, 320.0, 900.0, 2) == Affordable(3, None, False)  # two rounds of 125 s
    assert affordable(0.125, 1000, 3, 320.0, 900.0, 2, more=1) == Affordable(3, 682, False)
    assert affordable(0.3, 1000, None, None, 900.0, 2, more=1) == Affordable(1, None, False)


def test_networks_for_use_see_all_recordings_where_there_is_time_or_no_choice():
    assert affordable(0.125, 1000, 3, None, 900.0, 2) == Affordable(3, None, True)  # twice two rounds of 125 s
    assert affordable(0.2, 1000, 3, None, 900.0, 2) == Affordable(3, None, False)
    assert affordable(0.125, 1000, 3, 320.0, 900.0, 2, whole=True) == Affordable(3, 512, True)


@given(
    st.floats(0.01, 5), st.integers(200, 1500), st.floats(30, 7200), st.integers(1, 16), st.sampled_from([0, 1]),
    st.booleans(),
)  # fmt: skip
def test_a_limit_is_kept_or_the_least_is_done(each, steps, seconds, cores, more, whole):
    found = affordable(each, steps, None, seconds, 900.0, cores, more, whole)
    fewer = found.steps
    assert found.members in CHOICES and (found.whole or not whole)
    taken = each * (fewer or steps) * (-(-found.members // cores) * (1 + found.whole) + more)
    assert taken <= seconds or fewer == STEP_LIMITS[0]


@given(stride=st.integers(1, 200))
def test_the_strides_of_a_stem_multiply_to_the_stride_of_its_positions(stride):
    assert int(np.prod(stem_for(stride))) == stride
    assert all(factor > 1 for factor in stem_for(stride))


@pytest.mark.parametrize("stride", [1, 7, 14, 60])
def test_a_stride_that_is_given_holds_for_all_members(stride):
    plan = make_plan(data(), 5, stride=stride)
    assert {plan.settings(member)["data.stride"] for member in range(5)} == {stride}
    assert all(config_of(plan, member).data.stride == stride for member in range(5))


def test_few_features_are_learned_by_a_small_network():
    few = data(rate=4.0, seconds=700.0, recording=20.0, channels=316, kinds={"feature": 316})
    assert make_plan(few, 1, framed=True).settings(0)["model.width"] == 64
    assert "model.width" not in make_plan(replace(few, seconds=36_000.0), 1, framed=True).settings(0)
    assert "model.width" not in make_plan(data(seconds=700.0), 1).settings(0)
    assert config_of(make_plan(few, 3, framed=True), 1).augment.warp == 0.2
