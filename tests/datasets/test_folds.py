"""Folds: subjects stay together, classes are spread; a single recording is cut between its instances."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.datasets.folds import deal_folds, in_pieces
from temporalzoom.formats import Recording
from temporalzoom.segments import Segments
from temporalzoom.signals.container import Signal


def recording(name, labels, subject=None):
    starts = np.arange(len(labels), dtype=float)
    extra = {} if subject is None else {"subject": subject}
    return Recording(name, None, 60.0, 10.0, Segments(starts, starts + 0.5, labels), extra=extra)


@given(
    st.lists(st.tuples(st.integers(0, 7), st.lists(st.sampled_from("abc"), max_size=6)), min_size=8, max_size=30),
    st.integers(2, 5),
)
def test_subjects_stay_together_and_no_fold_is_empty(rows, folds):
    recordings = [recording(f"r{i}", labels, f"s{who}") for i, (who, labels) in enumerate(rows)]
    subjects = {f"s{who}" for who, _ in rows}
    dealt = deal_folds(recordings, folds)
    assert set(dealt) == {r.name for r in recordings} and set(dealt.values()) <= set(range(folds))
    by_subject = {r.extra["subject"]: {dealt[o.name] for o in recordings if o.extra == r.extra} for r in recordings}
    assert all(len(found) == 1 for found in by_subject.values())
    if len(subjects) >= folds:
        assert set(dealt.values()) == set(range(folds))
    assert dealt == deal_folds(recordings, folds)


def test_a_rare_class_is_spread():
    recordings = [recording(f"r{i:02d}", ["common"] * 5 + ["rare"] * (i < 5)) for i in range(20)]
    dealt = deal_folds(recordings, 5)
    rare = Counter(dealt[r.name] for r in recordings if "rare" in r.segments.labels)
    assert rare == Counter(range(5))
    assert max(Counter(dealt.values()).values()) <= 5


@given(
    st.lists(st.tuples(st.floats(0.2, 5), st.floats(0.2, 5)), min_size=1, max_size=20),
    st.integers(2, 5),
    st.sampled_from([5.0, 20.0]),
)
def test_pieces_hold_every_instance_whole(rows, count, fps):
    """Gaps and lengths in turn; nothing is cut, and pieces together are the recording."""
    edges = np.cumsum([value for row in rows for value in row])
    starts, ends = edges[::2], edges[1::2]
    length = int((edges[-1] + 1) * fps)
    signal = Signal(np.arange(length, dtype=np.float32)[:, None], fps=fps)
    whole = Recording("day", None, length / fps, fps, Segments(starts, ends, ["a"] * len(starts)))
    pieces = in_pieces(whole, signal, count)
    assert np.concatenate([piece.values for _, piece in pieces]).ravel().tolist() == list(range(length))
    assert sum(len(part.segments) for part, _ in pieces) == len(starts)
    assert len({part.name for part, _ in pieces}) == len(pieces) <= count
    lengths = np.concatenate([part.segments.durations for part, _ in pieces])
    np.testing.assert_allclose(np.sort(lengths), np.sort(ends - starts), atol=1.01 / fps)
