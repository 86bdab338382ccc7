"""mAP by instance length, and the tables for the terminal."""

import io
import math

import numpy as np
import pytest
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.metrics import evaluate_by_length, evaluate_detections, per_class_table, per_length_table
from temporalzoom.segments import Segments

TRUTH = {"v": Segments([0, 10, 15.4], [2, 15, 18.4], ["a", "a", "b"])}  # lengths 2, 5 and 3 (2.9999999999999982)
FOUND = {"v": Segments([10, 50, 0], [15, 60, 2], ["a", "a", "a"], [0.9, 0.8, 0.7])}


def printed(table):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


def random_case(seed, videos=6):
    draw = np.random.default_rng(seed)
    truth, found = {}, {}
    for index in range(videos):
        starts, lengths = draw.uniform(0, 60, 12), draw.exponential(4, 12)
        labels = draw.choice(["a", "b", "c"], 12)
        truth[f"v{index}"] = Segments(starts, starts + lengths, labels)
        jitter = draw.normal(0, 0.5, (2, 24))
        twice = np.sort(np.stack([np.tile(starts, 2), np.tile(starts + lengths, 2)]) + jitter, axis=0)
        found[f"v{index}"] = Segments(*twice, np.tile(labels, 2), draw.random(24))
    return truth, found


def test_other_lengths_are_neither_true_nor_false():
    result = evaluate_by_length(TRUTH, FOUND, [0.5], edges=(0, 3, 6))
    # Short: the long hit is left out, the miss at 0.8 stays: precision 1/2. Long: the first detection is right.
    np.testing.assert_allclose(result.ap, [[[0.5, np.nan]], [[1.0, 0.0]]])
    np.testing.assert_allclose(result.mAP, [[0.5], [0.5]])
    assert result.instances.tolist() == [1, 2]


def test_empty_bins_are_nan():
    result = evaluate_by_length(TRUTH, FOUND, [0.3, 0.5], edges=(0, 1, 100, math.inf))
    assert np.isnan(result.mAP[[0, 2]]).all() and not np.isnan(result.mAP[1]).any()
    assert result.instances.tolist() == [0, 3, 0]


def test_one_bin_of_all_lengths_is_the_plain_evaluation():
    for protocol in ["anet", "th14"]:
        truth, found = random_case(0)
        ambiguous = {"v1": Segments([5], [9], ["?"])}
        plain = evaluate_detections(truth, found, [0.3, 0.5, 0.7], protocol, ambiguous)
        binned = evaluate_by_length(truth, found, [0.3, 0.5, 0.7], (0, math.inf), protocol, ambiguous)
        np.testing.assert_array_equal(binned.ap[0], plain.ap)
        assert 0.05 < plain.average < 0.95


def test_bins_share_the_positives():
    for protocol in ["anet", "th14"]:
        truth, found = random_case(1)
        result = evaluate_by_length(truth, found, [0.5], protocol=protocol)
        assert result.instances.sum() == sum(map(len, truth.values()))
        perfect = evaluate_by_length(truth, truth, [0.5, 0.9], protocol=protocol)
        assert set(np.unique(perfect.mAP[perfect.instances > 0])) == {1.0}


def test_bad_edges_are_refused():
    for edges in [(1,), (0, 3, 3), (3, 0), (0, math.nan)]:
        with pytest.raises(InputError, match="edges"):
            evaluate_by_length(TRUTH, FOUND, [0.5], edges)


def test_per_class_table_shows_percentages_and_means():
    lines = printed(per_class_table(evaluate_detections(TRUTH, FOUND, [0.3, 0.5]))).splitlines()
    cells = {line.split()[1]: line.split()[3::2] for line in lines if line.startswith("│")}
    assert cells == {"a": ["83.33"] * 3, "b": ["0.00"] * 3, "mAP": ["41.67"] * 3}


def test_per_length_table_shows_counts_and_dashes():
    text = printed(per_length_table(TRUTH, FOUND, [0.5], edges=(0, 1, 3, math.inf)))
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    assert rows == [
        ["0 to 1 s", "0", "-", "-"],
        ["1 to 3 s", "1", "50.00", "50.00"],
        ["3 s and more", "2", "50.00", "50.00"],
    ]
