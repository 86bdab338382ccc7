"""Small annotations and predictions for hypothesis: overlaps, ties of tIoU and of score are common."""

from hypothesis import strategies as st

from temporalzoom.segments import Segments

LABELS = ("a", "b", "c")
spans = st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda pair: (float(pair[0]), float(sum(pair))))
instances = st.lists(st.tuples(spans, st.sampled_from(LABELS)), max_size=5)
detections = st.lists(st.tuples(spans, st.sampled_from((*LABELS, "never annotated")), st.integers(0, 4)), max_size=8)
truths = st.dictionaries(st.sampled_from("uvw"), instances, min_size=1).filter(lambda truth: any(truth.values()))
predictions = st.dictionaries(st.sampled_from("wxvu"), detections)


def as_segments(rows):
    """{recording: [((start, end), label, score)]}; without a score: annotations."""
    return {
        name: Segments([r[0][0] for r in part], [r[0][1] for r in part], [r[1] for r in part], [r[2] for r in part])
        if part and len(part[0]) == 3
        else Segments([r[0][0] for r in part], [r[0][1] for r in part], [r[1] for r in part])
        for name, part in rows.items()
    }


def overlap_of(one, other):
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared / (max(one[1], other[1]) - min(one[0], other[0])) if shared > 0 else 0.0
