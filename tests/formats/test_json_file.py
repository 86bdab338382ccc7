"""Annotation and prediction files: round trips, real files, and one clear line for each malformed one."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import (
    Annotations,
    Recording,
    read_annotations,
    read_predictions,
    write_annotations,
    write_predictions,
)
from temporalzoom.segments import Segments

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
CLASSES = st.sampled_from(["run", "jump", 'Sprung mit "Anlauf"', "跳高", "a&b<c>"])
SECONDS = st.floats(-1e6, 1e6)


@st.composite
def segments(draw: st.DrawFn, scored: bool) -> Segments:
    rows = draw(st.lists(st.tuples(SECONDS, SECONDS, CLASSES, st.floats(0, 1) if scored else st.just(1.0)), max_size=5))
    rows = [(*sorted(row[:2]), *row[2:]) for row in rows] if scored else rows  # annotations may be senseless
    return Segments.unchecked(*zip(*rows, strict=True)) if rows else Segments.empty()


@st.composite
def annotation_sets(draw: st.DrawFn) -> Annotations:
    recordings = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=4)):
        spans = draw(st.lists(st.tuples(SECONDS, SECONDS), max_size=3))
        recordings[name] = Recording(
            name,
            subset=draw(st.none() | st.sampled_from(["train", "Test"])),
            duration=draw(st.none() | SECONDS),
            fps=draw(st.none() | st.floats(1, 240)),
            segments=draw(segments(scored=False)),
            ambiguous=Segments.unchecked([s for s, _ in spans], [e for _, e in spans], ["Ambiguous"] * len(spans)),
            extra=draw(st.dictionaries(st.sampled_from(["subject", "note", "url"]), NAMES | st.integers())),
        )
    classes = draw(st.permutations(["run", "jump", 'Sprung mit "Anlauf"', "跳高", "a&b<c>", "never occurs"]))
    return Annotations(recordings, tuple(classes), draw(st.dictionaries(st.just("version"), NAMES)))


def database(tmp_path: Path, entries: object, **top: object) -> Path:
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps({"database": entries, **top}))
    return path


def entry(*labels_ids: tuple[str, object], **keys: object) -> dict[str, object]:
    records = [{"label": label, "segment": [i, i + 1]} | ({} if k is None else {"label_id": k})
               for i, (label, k) in enumerate(labels_ids)]  # fmt: skip
    return {"subset": "train", "duration": 9, "fps": 30, "annotations": records, **keys}


@given(annotation_sets())
def test_annotations_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, original: Annotations
) -> None:
    path = tmp_path_factory.mktemp("round") / "a.json"
    write_annotations(path, original)
    assert read_annotations(path) == original


@given(st.dictionaries(NAMES, segments(scored=True), max_size=4))
def test_predictions_survive_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, original: dict[str, Segments]
) -> None:
    path = tmp_path_factory.mktemp("round") / "p.json"
    write_predictions(path, original)
    assert read_predictions(path) == original
    assert set(json.loads(path.read_text(encoding="utf-8"))) == {"version", "results", "external_data"}


def test_classes_follow_label_ids_only_if_these_are_consistent(tmp_path: Path) -> None:
    def classes(*pairs: tuple[str, object]) -> tuple[str, ...]:
        return read_annotations(database(tmp_path, {"v": entry(*pairs)})).classes

    assert classes(("walk", 0), ("run", 7), ("jump", 3)) == ("walk", "jump", "run")
    assert classes(("walk", 0), ("run", None)) == ("run", "walk")  # one id is missing
    assert classes(("run", 0), ("walk", 0), ("jump", 1)) == ("jump", "run", "walk")  # two labels share one
    assert classes(("walk", 0), ("walk", 1), ("run", 2)) == ("run", "walk")  # one label has two
    assert classes(("walk", 0), ("run", "1")) == ("run", "walk")  # not a number
    assert classes(("walk", False), ("run", True)) == ("run", "walk")
    assert classes() == ()


def test_ambiguous_is_never_a_class(tmp_path: Path) -> None:
    video = entry(("run", 1), ("Ambiguous", 0), ambiguous=[[5, 6], {"segment": [7, 8]}])
    found = read_annotations(database(tmp_path, {"v": video}))
    assert found.classes == ("run",)
    assert found.truth() == {"v": Segments([0], [1], ["run"])}
    assert [(start, end) for start, end, _, _ in found.ambiguous()["v"]] == [(1, 2), (5, 6), (7, 8)]


def test_subset_ignores_case_and_keeps_all_classes(tmp_path: Path) -> None:
    found = read_annotations(
        database(tmp_path, {"a": entry(("run", 1), subset="Test"), "b": entry(("jump", 0)), "c": entry(subset=None)})
    )
    assert list(found.subset("tEST").recordings) == ["a"]
    assert found.subset("test").classes == ("jump", "run")
    with pytest.raises(InputError, match=r"'validation'.*present: Test, train"):
        found.subset("validation")
    with pytest.raises(InputError, match="present"):
        found.subset("")


def test_senseless_times_are_left_to_the_check(tmp_path: Path) -> None:
    video = {"duration": -1, "annotations": [{"label": "run", "segment": [5, 2]}]}
    assert read_annotations(database(tmp_path, {"v": video})).truth()["v"] == Segments.unchecked([5], [2], ["run"])


def test_a_prediction_that_ends_before_it_starts_is_named(tmp_path: Path) -> None:
    good, bad = ({"label": "run", "segment": times, "score": 0.5} for times in ([2, 2], [5, 2]))
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"results": {"v": [good, bad]}}))
    with pytest.raises(InputError, match=r"p\.json: video 'v', prediction 1 ends before it starts: 5 to 2 s"):
        read_predictions(path)


def test_extra_keys_are_kept_and_segment_in_frames_is_not(tmp_path: Path) -> None:
    video = entry(("run", 0), subject="s01")
    video["annotations"][0]["segment(frames)"] = [0, 30]  # type: ignore[index]
    path = database(tmp_path, {"v": video}, version="1.3", taxonomy=[{"nodeId": 1}])
    write_annotations(path, read_annotations(path))
    written = json.loads(path.read_text())
    assert written["version"] == "1.3" and written["taxonomy"] == [{"nodeId": 1}]
    assert written["database"]["v"]["subject"] == "s01"
    assert written["database"]["v"]["annotations"] == [{"label": "run", "segment": [0, 1], "label_id": 0}]


@pytest.mark.parametrize(
    ("video", "words"),
    [
        ([], ["video 'v'", "object", "[]"]),
        ({"subset": "train"}, ["video 'v'", "'annotations'"]),
        ({"annotations": {}}, ["video 'v'", "'annotations'", "list"]),
        ({"annotations": ["x"]}, ["annotation 0", "'x'"]),
        ({"annotations": [{"segment": [0, 1]}]}, ["annotation 0", "'label'"]),
        ({"annotations": [{"label": 3, "segment": [0, 1]}]}, ["annotation 0", "'label'", "3"]),
        ({"annotations": [{"label": "", "segment": [0, 1]}]}, ["annotation 0", "'label'"]),
        ({"annotations": [{"label": "a"}]}, ["annotation 0", "'segment'"]),
        ({"annotations": [{"label": "a", "segment": [0, 1]}, {"label": "a", "segment": [4]}]}, ["annotation 1", "[4]"]),
        ({"annotations": [{"label": "a", "segment": [0, "1"]}]}, ["annotation 0", "'segment'", "'1'"]),
        ({"annotations": [{"label": "a", "segment": [0, True]}]}, ["annotation 0", "True"]),
        ({"annotations": [{"label": "a", "segment": [0, float("nan")]}]}, ["annotation 0", "nan"]),
        ({"annotations": [{"label": "a", "segment": [0, 10**400]}]}, ["annotation 0", "finite"]),
        ({"annotations": [], "duration": "long"}, ["'duration'", "'long'"]),
        ({"annotations": [], "fps": [30]}, ["'fps'", "[30]"]),
        ({"annotations": [], "subset": 1}, ["'subset'", "1"]),
        ({"annotations": [], "ambiguous": [{"start": 1}]}, ["ambiguous 0", "'segment'"]),
        ({"annotations": [], "ambiguous": [3]}, ["ambiguous 0", "3"]),
    ],
)
def test_a_malformed_video_is_named_in_one_line(tmp_path: Path, video: object, words: list[str]) -> None:
    path = database(tmp_path, {"fine": entry(("run", 0)), "v": video})
    with pytest.raises(InputError) as caught:
        read_annotations(path)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    assert all(word in message for word in [str(path), "'v'", *words]), message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["not a JSON file"]),
        (b"{", ["not a JSON file"]),
        (b"\xff\xfe\x00", ["not a JSON file"]),
        (b"[" * 100_000, ["not a JSON file"]),
        (b"[1]", ["object"]),
        (b'{"results": {}}', ["'database'", "predictions"]),
        (b'{"v_1": {"duration_second": 3, "annotations": []}, "v_2": {}}', ["'database'", "BSN"]),
        (b'{"v_1": {"duration_second": "3", "annotations": []}}', ["'v_1'", "'duration'"]),
        (b'{"videos": []}', ["'database'", "videos"]),
        (b'{"database": []}', ["'database'"]),
        (b'{"database": {"a": {"annotations": []}, "a": {"annotations": []}}}', ["'a'", "more than once"]),
        (b'{"database": {}, "classes": "run"}', ["'classes'", "'run'"]),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_line(tmp_path: Path, content: bytes, words: list[str]) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_annotations(path)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in [str(path), *words]), caught.value


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ({"v": {}}, ["'v'", "list"]),
        ({"v": [{"label": "a", "segment": [0, 1]}]}, ["prediction 0", "'score'"]),
        ({"v": [{"label": "a", "segment": [0, 1], "score": None}]}, ["prediction 0", "'score'", "None"]),
        ({"v": [{"label": "a", "segment": 4, "score": 1}]}, ["prediction 0", "'segment'", "4"]),
    ],
)
def test_malformed_predictions_are_named(tmp_path: Path, results: object, words: list[str]) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"results": results}))
    with pytest.raises(InputError) as caught:
        read_predictions(path)
    assert all(word in str(caught.value) for word in [str(path), *words]), caught.value


def test_missing_files_and_the_wrong_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.json.*No such file"):
        read_annotations(tmp_path / "absent.json")
    with pytest.raises(InputError, match="annotations"):
        read_predictions(database(tmp_path, {}))


def test_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    path = database(tmp_path, {"v": entry(("run", 0))})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_annotations(path).classes == ("run",)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    write_predictions(path, {"v": Segments([0], [1], ["run"], [0.5])})
    before = path.read_bytes()
    with pytest.raises(ValueError):
        write_predictions(path, {"v": Segments([0], [1], ["run"], [float("nan")])})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["p.json"]
    with pytest.raises(InputError, match=r"p\.json/deeper\.json: cannot be written"):
        write_predictions(path / "deeper.json", {})


def test_who_reads_while_it_is_written_sees_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    write_predictions(path, {"old": Segments.empty()})
    before = path.read_text()
    with path.open() as reader:
        write_predictions(path, {"new": Segments.empty()})
        assert reader.read() == before
    assert list(read_predictions(path)) == ["new"]


def test_written_files_follow_the_umask_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    before = os.umask(0o022)
    try:
        write_predictions(tmp_path / "link.json", {})
    finally:
        os.umask(before)
    assert (tmp_path / "link.json").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o644
    assert read_predictions(tmp_path / "real.json") == {}


def test_each_record_is_written_on_one_line(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.json", {"v": Segments([0, 2], [1, 3], ["run", "jump"], [0.5, 0.25])})
    lines = (tmp_path / "p.json").read_text().splitlines()
    assert '   {"label": "run", "segment": [0.0, 1.0], "score": 0.5},' in lines


def test_thumos14(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "thumos14" / "thumos14.json"
    raw = json.loads(path.read_text())["database"]
    found = read_annotations(path)
    assert len(found.recordings) == len(raw) == 412
    assert len(found.classes) == 20 and found.classes == tuple(sorted(found.classes))
    assert (len(found.subset("validation").recordings), len(found.subset("test").recordings)) == (200, 212)
    assert all(len(found.truth()[v]) == len(raw[v]["annotations"]) for v in raw)
    write_annotations(tmp_path / "copy.json", found)
    assert read_annotations(tmp_path / "copy.json") == found


def test_scnn(shared_data: Path) -> None:
    folder = shared_data / "thumos14" / "scnn"
    truth = read_annotations(folder / "thumos14_test_gt.json")
    raw = json.loads((folder / "thumos14_test_gt.json").read_text())["database"]
    assert len(truth.classes) == 20
    assert sum(map(len, truth.ambiguous().values())) == sum(len(v["ambiguous"]) for v in raw.values()) > 0
    for path in sorted(folder.glob("scnn_iou*.json")):
        raw = json.loads(path.read_text())["results"]
        found = read_predictions(path)
        assert {v: len(s) for v, s in found.items()} == {v: len(records) for v, records in raw.items()}
        assert {label for s in found.values() for label in s.labels} <= set(truth.classes)
    with pytest.raises(InputError, match="'results'"):
        read_predictions(folder / "expected.json")


@pytest.mark.parametrize(
    ("file", "recordings", "instances", "classes"),
    [("tug/phone.json", 223, None, 5), ("rats/coarse.json", 58, 3315, 3), ("rats/fine.json", 58, 1422, 7)],
)
def test_sensor_data_sets(
    shared_data: Path, tmp_path: Path, file: str, recordings: int, instances: int | None, classes: int
) -> None:
    found = read_annotations(shared_data / file)
    assert (len(found.recordings), len(found.classes)) == (recordings, classes)
    assert instances is None or sum(map(len, found.truth().values())) == instances
    write_annotations(tmp_path / "copy.json", found)
    assert read_annotations(tmp_path / "copy.json") == found


def test_the_bsn_form(tmp_path: Path) -> None:
    entry = {"duration_second": 80.0, "duration_frame": 2000, "feature_frame": 1984}
    entry["annotations"] = [{"segment": [1.5, 3], "label": "Ballet"}]
    (tmp_path / "x.json").write_text(json.dumps({"v_1": entry, "v_2": {"duration_second": 3, "annotations": []}}))
    found = read_annotations(tmp_path / "x.json")
    first, second = found.recordings.values()
    assert (first.name, first.subset, first.duration, first.fps) == ("v_1", None, 80.0, 25.0)
    assert first.segments == Segments([1.5], [3], ["Ballet"]) and first.extra["feature_frame"] == 1984
    assert (second.duration, second.fps, len(second.segments)) == (3.0, None, 0)
    assert found.classes == ("Ballet",)
    with pytest.raises(InputError, match="BSN form"):
        read_predictions(tmp_path / "x.json")


def test_the_bsn_form_of_activitynet(shared_data: Path) -> None:
    found = read_annotations(shared_data / "activitynet" / "anet_anno_action.json")
    assert (len(found.recordings), len(found.classes)) == (19228, 200)
    assert sum(map(len, found.truth().values())) == 22152
    assert {recording.subset for recording in found.recordings.values()} == {None}


def test_frames_give_the_rate_where_the_file_says_none(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"database": {"v": {"duration": 20, "frame": 500, "annotations": []},
                                             "w": {"duration": 20, "frame": 500, "fps": 24, "annotations": []},
                                             "x": {"frame": 500, "annotations": []}}}))  # fmt: skip
    assert [r.fps for r in read_annotations(path).recordings.values()] == [25.0, 24.0, None]


def test_recordings_without_annotations_where_they_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"database": {"v": {"subset": "test", "duration": 20}}}')
    with pytest.raises(InputError, match="no key 'annotations'"):
        read_annotations(path)
    [recording] = read_annotations(path, allow_unlabelled=True).recordings.values()
    assert recording.extra == {"unlabelled": True} and len(recording.segments) == 0


def test_the_label_is_under_the_first_key_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    records = [{"segment": [0, 1], "verb": "take"}, {"segment": [0, 1], "label": "put", "verb": "take"}]
    path.write_text(json.dumps({"database": {"v": {"annotations": records}}}))
    found = read_annotations(path, label_keys=("label", "verb"))
    assert found.truth()["v"].labels.tolist() == ["take", "put"]
    with pytest.raises(InputError, match="annotation 0: no key 'label'"):
        read_annotations(path)
