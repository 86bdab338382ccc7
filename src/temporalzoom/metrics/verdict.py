"""A detector's result in plain words: what it finds, how precisely, what it confuses, and how far to trust that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from temporalzoom.metrics.errors import Analysis, BoundarySeconds
from temporalzoom.metrics.rates import Interval, RateIntervals

FEW = 10  # instances or recordings: below, numbers say little
LISTED = 3  # classes or confusions in one sentence
_LOST = {
    "missed": ("is missed altogether", "are missed altogether"),
    "misplaced": ("is found with misplaced boundaries", "are found with misplaced boundaries"),
    "wrong label": ("is found under another label", "are found under another label"),
}
_WRONG = {
    "background": ("lies where nothing is annotated", "lie where nothing is annotated"),
    "misplaced": ("has misplaced boundaries", "have misplaced boundaries"),
    "wrong label": ("has the wrong label", "have the wrong label"),
    "duplicate": ("repeats another one", "repeat another one"),
}


def verdict(analysis: Analysis) -> list[str]:
    """Sentences, the most important first; labels stand in backticks."""
    sentences = [_overall(analysis), *_boundaries(analysis), *_by_class(analysis), *_confusions(analysis)]
    detections, instances = analysis.kinds()
    sentences += _shares("instance", "not found", {kind: instances[kind] for kind in _LOST}, _LOST)
    sentences += _shares("detection", "that is wrong", {kind: detections[kind] for kind in _WRONG}, _WRONG)
    return sentences + _needed(analysis)


def trust(
    analysis: Analysis,
    subjects: Mapping[str, str] | None = None,
    intervals: RateIntervals | None = None,
    average_map: Interval | None = None,
) -> list[str]:
    """How far the numbers hold. intervals, average_map: 95 % intervals over recordings of all classes, if known."""
    recordings = analysis.recordings[: len(analysis.recordings) - analysis.unknown]
    people = {subjects[name] for name in recordings if name in subjects} if subjects else set()
    who = f" of {counted(len(people), 'subject')}" if people else ""
    instances = counted(len(analysis.truth), "instance")
    sentences = [f"These numbers come from {counted(len(recordings), 'recording')}{who} with {instances}."]
    if analysis.unknown:
        others = counted(analysis.unknown, "recording")
        sentences.append(
            f"Predictions name {others} that the annotations do not have: all that is found there counts as wrong."
        )
    sentences += _interval_sentences(len(recordings), intervals, average_map)
    annotated = {label: analysis.counts(label).instances for label in analysis.classes}
    few = [f"{quoted(label)} ({count})" for label, count in annotated.items() if 0 < count < FEW]
    if few:
        has, their = ("has", "its") if len(few) == 1 else ("have", "their")
        sentences.append(f"{listed(few)} {has} fewer than {FEW} instances here: {their} numbers say little.")
    if analysis.fitted:
        whose = "" if len(analysis.fitted) == len(analysis.classes) else f" of {listed(_quoted(analysis.fitted))}"
        sentences.append(
            f"The score thresholds{whose} are those of the best F1 on these same recordings: on new ones a little less "
            "will be found, or a little more be wrong."
        )
    return sentences


def counted(number: int, noun: str) -> str:
    """`1 recording`, `7 recordings`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(parts: Sequence[str], limit: int = 2 * LISTED) -> str:
    """`a`, `a and b`, `a, b and c`; what is beyond the limit is counted."""
    shown = list(parts) if len(parts) <= limit + 1 else [*parts[:limit], f"{len(parts) - limit} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def quoted(label: str) -> str:
    return f"`{label}`"


def seconds(value: float) -> str:
    """Two digits are enough: `0.03 s`, `0.2 s`, `1.5 s`, `12 s`."""
    size = abs(value)
    if size < 0.01:
        return "less than 0.01 s"
    return f"{size:.0f} s" if size >= 9.95 else f"{size:.2g} s"


def bias_words(errors: BoundarySeconds, what: str) -> str | None:
    """`starts are found 0.1 s too early on average`, where that is more than chance and matters; else None."""
    if errors.count < FEW or errors.bias**2 * errors.count <= 9 * errors.deviation**2:
        return None
    if abs(errors.bias) < max(0.25 * errors.median, 0.01):
        return None
    side = "early" if errors.bias < 0 else "late"
    return f"{what} are found {seconds(errors.bias)} too {side} on average"


def _overall(analysis: Analysis) -> str:
    counts = analysis.counts()
    annotated = _annotated(analysis)
    noun = quoted(annotated[0]) if len(annotated) == 1 else "instances"  # several classes: several instances
    only, wrong = counts.instances == 1, counts.detections - counts.correct
    if not counts.correct:
        missed = f"Does not find the only {noun}" if only else f"Finds none of the {counts.instances} {noun}"
        if not wrong:
            return f"{missed}: nothing has a score that counts."
        return (
            f"{missed}: its only detection is wrong." if wrong == 1 else f"{missed}: all {wrong} detections are wrong."
        )
    if counts.correct < counts.instances:
        found = f"Finds {counts.correct} of {counts.instances} {noun}"
    else:
        found = f"Finds the only {noun}" if only else f"Finds all {counts.instances} {noun}"
    if not wrong:
        return f"{found}, and nothing that is not there."
    return f"{found}; {wrong} of its {counts.detections} detections {'is' if wrong == 1 else 'are'} wrong."


def _boundaries(analysis: Analysis) -> list[str]:
    start, end = analysis.boundaries()
    if not start.count:
        return []
    sentences = [f"Starts are good to {seconds(start.median)} (median), ends to {seconds(end.median)}."]
    biases = [text for text in (bias_words(start, "starts"), bias_words(end, "ends")) if text]
    if biases:
        text = " and ".join(biases)
        sentences.append(f"{text[0].upper()}{text[1:]}.")
    return sentences


def _annotated(analysis: Analysis) -> list[str]:
    return [label for label in analysis.classes if analysis.counts(label).instances]


def _by_class(analysis: Analysis) -> list[str]:
    """Nothing for one class, which the first sentence is about, and where all are equal."""
    counts = {label: analysis.counts(label) for label in _annotated(analysis)}
    if len(counts) < 2 or len({c.recall for c in counts.values()}) == 1:
        return []
    best_first = sorted(counts, key=lambda label: (-counts[label].recall, -counts[label].instances, label))
    words = [f"{counts[label].correct} of {counts[label].instances} {quoted(label)}" for label in best_first]
    if len(words) <= 2 * LISTED:
        return [f"Class by class: {listed(words)}."]
    return [f"Found best: {listed(words[:LISTED])}. Found worst: {listed(words[: -LISTED - 1 : -1])}."]


def _confusions(analysis: Analysis) -> list[str]:
    frequent = []
    for true, instead, count in analysis.confusions():
        instances = analysis.counts(true).instances
        if count >= 2 and count >= 0.05 * instances:
            frequent.append(f"{quoted(true)} is confused with {quoted(instead)} ({count} of {instances})")
    return [f"{listed(frequent[:LISTED])}."] if frequent else []


def _shares(noun: str, what: str, counts: dict[str, int], words: Mapping[str, tuple[str, str]]) -> list[str]:
    """`Of the 8 instances not found, 5 are missed altogether and 3 ...`, most frequent first."""
    total = sum(counts.values())
    present = sorted((kind for kind in counts if counts[kind]), key=lambda kind: -counts[kind])
    if not present:
        return []
    if total == 1:
        return [f"The one {noun} {what} {words[present[0]][0]}."]
    many = f"{noun}s {what.replace('that is', 'that are')}"
    if len(present) == 1:
        return [f"The {total} {many} {words[present[0]][1]}."]
    parts = [f"{counts[kind]} {words[kind][counts[kind] != 1]}" for kind in present]
    return [f"Of the {total} {many}, {listed(parts)}."]


def _needed(analysis: Analysis) -> list[str]:
    """The class that is rare and found badly, the worst of them: there examples are missing."""
    counts = {label: analysis.counts(label) for label in _annotated(analysis)}
    if len(counts) < 2:
        return []
    rare = max(FEW, 0.5 * median(c.instances for c in counts.values()))
    overall = analysis.counts().f1
    poor = [label for label, c in counts.items() if c.instances < rare and c.f1 < overall - 0.1]
    if not poor:
        return []
    worst = min(poor, key=lambda label: (counts[label].f1, counts[label].instances))
    number = counted(counts[worst].instances, "example")
    more = "them" if counts[worst].instances > 1 else "its kind"
    return [f"{quoted(worst)} has {number} here: more of {more} to learn from would probably help most."]


def _interval_sentences(recordings: int, intervals: RateIntervals | None, average_map: Interval | None) -> list[str]:
    if recordings < 2:
        return ["One recording does not tell how the detector would do on another one."]
    parts = []
    if intervals is not None and intervals.recall is not None:
        parts.append(f"{_percents(intervals.recall)} of the instances would be found")
    if intervals is not None and intervals.precision is not None:
        parts.append(f"{_percents(intervals.precision)} of the detections would be right")
    if average_map is not None:
        low, high = average_map
        parts.append(f"average mAP would be {100 * low:.1f} to {100 * high:.1f}")
    if not parts:
        return []
    narrow = f" With fewer than {FEW} recordings the truth may well lie outside." if recordings < FEW else ""
    return [f"On other recordings like these, {listed(parts)} (95 % bootstrap intervals over recordings).{narrow}"]


def _percents(interval: Interval) -> str:
    low, high = (f"{100 * value:.0f}" for value in interval)
    return f"{low} %" if low == high else f"{low} to {high} %"


def _quoted(labels: Sequence[str]) -> list[str]:
    return [quoted(label) for label in labels]
