"""From the `data` section to samples: own data by one JSON and one folder, and the embedded benchmark."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from temporalzoom.config import DataConfig, FolderData, ZoomBenchData, load_config
from temporalzoom.datasets.check import DataProblems
from temporalzoom.datasets.report import report_data
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.datasets.zoombench_files import write_zoombench
from temporalzoom.errors import InputError
from temporalzoom.signals.feature_files import write_features
from temporalzoom.timegrid import TimeGrid

STRIDE, WINDOW, FPS, LENGTH, WIDTH = 5, 10, 25.0, 100, 3
DURATION = ((LENGTH - 1) * STRIDE + WINDOW) / FPS
NEITHER = "is neither a folder of feature files nor an .npz archive of arrays"
BENCH = ZoomBench(sequences=6, test_sequences=2, length=512, dimension=5)  # every class occurs
EMBEDDED = ZoomBenchData(source="zoombench", sequences=6, test_sequences=2)


class OwnData:
    """A folder as a user would make it: `truth.json` and `i3d/<name>.npy`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database: dict[str, dict[str, Any]] = {}
        self.extra: dict[str, Any] = {}

    def add(
        self, name: str, subset: str, *instances: tuple[float, float, str], features: bool = True, **keys: Any
    ) -> None:
        annotations = [{"label": label, "segment": [start, end]} for start, end, label in instances]
        entry = {"subset": subset, "duration": DURATION, "fps": FPS, "annotations": annotations, **keys}
        self.database[name] = {key: value for key, value in entry.items() if value is not None}
        if features:
            write_features(self.folder / "i3d" / f"{name}.npy", self.features(name))

    @staticmethod
    def features(name: str) -> np.ndarray:
        return np.full((LENGTH, WIDTH), len(name), np.float32)

    def config(self, **changes: Any) -> DataConfig:
        (self.folder / "truth.json").write_text(json.dumps({**self.extra, "database": self.database}))
        settings = {"source": "folder", "annotations": self.folder / "truth.json", "features": self.folder / "i3d",
                    "stride": STRIDE, "window": WINDOW}  # fmt: skip
        return FolderData.model_validate({**settings, **changes})


@pytest.fixture
def own(tmp_path: Path) -> OwnData:
    data = OwnData(tmp_path)
    data.add("one", "train", (1, 2, "run"), (3, 5.5, "jump"))
    data.add("three", "train", (0, 4, "climb"))
    data.add("test1", "test", (2, 3, "run"))
    return data


def complaint(data: DataConfig, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_data(data, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def plain(tables: list) -> str:
    console = Console(file=io.StringIO(), width=200)
    for table in tables:
        console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def names(split: Split | None) -> list[str]:
    assert split is not None
    return [sample.name for sample in split.samples]


# Own data that is fine


def test_own_data_becomes_samples(own: OwnData):
    loaded = load_data(own.config())
    assert (names(loaded.train), names(loaded.test), loaded.skipped) == (["one", "three"], ["test1"], ())
    assert loaded.train is not None and loaded.test is not None
    assert loaded.train.input_width == WIDTH and loaded.train.classes == loaded.test.classes
    sample = loaded.train.samples[0]
    assert sample.grid == TimeGrid(STRIDE, WINDOW, FPS) and sample.duration == DURATION and len(sample) == LENGTH
    assert np.array_equal(sample.features, own.features("one")) and sample.features.dtype == np.float32
    assert list(sample.segments) == [(1.0, 2.0, "run", 1.0), (3.0, 5.5, "jump", 1.0)]
    assert loaded.train.truth()["three"] == loaded.train.samples[1].segments


def test_the_embedded_benchmark_has_nobody_to_leave_out():
    for setting in ("folds=3", "leave_out=ann", "validation_fold=0", "test_recordings=[rat4*]", "videos=here"):
        key = setting.split("=")[0]
        with pytest.raises(InputError, match=rf"data\.{key}\b"):
            load_config(None, ["data.source=zoombench", f"data.{setting}"])


def test_only_what_is_asked_for_is_read(own: OwnData):
    (own.folder / "i3d" / "test1.npy").unlink()
    loaded = load_data(own.config(), test=False)
    assert names(loaded.train) == ["one", "three"] and loaded.test is None
    (own.folder / "i3d" / "one.npy").unlink()
    write_features(own.folder / "i3d" / "test1.npy", own.features("test1"))
    loaded = load_data(own.config(), train=False)
    assert loaded.train is None and names(loaded.test) == ["test1"]
    assert loaded.test is not None and set(loaded.test.classes) == {"run", "jump", "climb"}  # those of training


def test_classes_are_those_of_training_in_the_order_of_the_file(own: OwnData):
    loaded = load_data(own.config())
    assert loaded.train is not None and loaded.train.classes == ("climb", "jump", "run")  # no order given: by name
    own.extra = {"classes": ["run", "swim", "jump", "climb"]}
    loaded = load_data(own.config())
    assert loaded.train is not None and loaded.train.classes == ("run", "swim", "jump", "climb")  # as declared
    own.extra = {}
    for name, ids in (("one", (7, 1)), ("three", (3,)), ("test1", (7,))):
        for record, label_id in zip(own.database[name]["annotations"], ids, strict=True):
            record["label_id"] = label_id
    loaded = load_data(own.config())
    assert loaded.train is not None and loaded.train.classes == ("jump", "climb", "run")


def test_subsets_have_any_name_in_any_case(own: OwnData):
    own.add("four", "VALIDATION", (1, 2, "run"))
    loaded = load_data(own.config(train_subset="Train", test_subset="validation"))
    assert (names(loaded.train), names(loaded.test)) == (["one", "three"], ["four"])


def test_a_test_subset_that_does_not_exist_is_none(own: OwnData):
    del own.database["test1"]
    loaded = load_data(own.config())
    assert names(loaded.train) == ["one", "three"] and loaded.test is None


def test_the_window_is_the_stride_unless_it_is_given(own: OwnData):
    loaded = load_data(own.config(window=None))
    assert loaded.train is not None and loaded.train.samples[0].grid == TimeGrid(STRIDE, STRIDE, FPS)


def test_fps_of_the_configuration_goes_before_that_of_the_file(own: OwnData):
    own.database["one"]["fps"] = 1000.0
    loaded = load_data(own.config(fps=FPS))
    assert loaded.train is not None and {sample.grid.fps for sample in loaded.train.samples} == {FPS}


def test_recordings_may_differ_in_fps_as_much_as_sensors_drift(own: OwnData):
    own.add("drift", "train", (1, 2, "run"), fps=1.01 * FPS)
    loaded = load_data(own.config())
    assert loaded.train is not None and [s.grid.fps for s in loaded.train.samples] == [FPS, FPS, 1.01 * FPS]
    own.add("slow", "train", (1, 2, "run"), fps=12.5, duration=2 * DURATION)
    with pytest.raises(DataProblems) as caught:
        load_data(own.config())
    assert [(problem.video, problem.kind) for problem in caught.value.problems] == [("slow", "other rate")]


def test_a_missing_duration_is_that_of_the_features(own: OwnData):
    own.add("open", "train", (1, 2, "run"), duration=None)
    own.add("told", "train", (1, 2, "run"), duration=DURATION - 0.2)
    loaded = load_data(own.config())
    assert loaded.train is not None
    assert [s.duration for s in loaded.train.samples[2:]] == pytest.approx([DURATION, DURATION - 0.2])


def test_recordings_without_actions_are_samples_too(own: OwnData):
    own.add("nothing", "train")
    loaded = load_data(own.config())
    assert names(loaded.train) == ["one", "three", "nothing"]


# Settings that are missing or wrong


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("annotations", "data.annotations: the annotation file (JSON) is needed"),
        ("features", "data.features: the folder with one feature file per recording is needed"),
        ("stride", "data.stride: how many frames lie between two feature vectors? A number is needed"),
    ],
)
def test_a_missing_setting_is_named(own: OwnData, setting: str, said: str):
    assert complaint(own.config(**{setting: None})) == said


def test_missing_fps_is_named_with_the_two_places_for_it(own: OwnData):
    del own.database["three"]["fps"]
    message = complaint(own.config())
    assert "three: time grid" in message and "truth.json" in message
    assert message.endswith("three has no fps; add it there, or set data.fps")
    assert names(load_data(own.config(fps=FPS)).train) == ["one", "three"]


def test_files_that_are_not_there(own: OwnData):
    nowhere = own.folder / "nowhere"
    assert complaint(own.config(features=nowhere)) == f"data.features: {nowhere} {NEITHER}"
    assert complaint(own.config(features=own.folder / "truth.json")).endswith(f"truth.json {NEITHER}")
    assert str(nowhere) in complaint(own.config(annotations=nowhere))


@pytest.mark.parametrize("name", ["training", ""])
def test_an_unknown_training_subset_is_answered_with_those_present(own: OwnData, name: str):
    said = f"truth.json: no subset {name!r} in the annotations; present: test, train"
    assert complaint(own.config(train_subset=name)).endswith(said)


def test_an_unknown_test_subset_is_an_error_where_it_alone_is_wanted(own: OwnData):
    said = "truth.json: no subset 'val' in the annotations; present: test, train"
    assert complaint(own.config(test_subset="val"), train=False).endswith(said)


def test_training_without_any_instance_is_refused(own: OwnData):
    for name in ("one", "three"):
        own.database[name]["annotations"] = []
    assert complaint(own.config()).endswith("truth.json: subset 'train' holds no annotated instance to learn from")


# Data that does not fit


def test_missing_features_are_an_error_or_left_out_by_name(own: OwnData):
    own.add("gone", "train", (1, 2, "run"), features=False)
    own.add("away", "test", (1, 2, "run"), features=False)
    message = complaint(own.config())
    assert message.startswith("data check: 2 x missing features, in 2 recordings; the first: gone: missing features")
    loaded = load_data(own.config(), allow_missing=True)
    assert loaded.skipped == ("away", "gone")
    assert (names(loaded.train), names(loaded.test)) == (["one", "three"], ["test1"])


def test_nothing_is_left_of_a_subset_whose_features_are_all_missing(own: OwnData):
    (own.folder / "i3d" / "test1.npy").unlink()
    loaded = load_data(own.config(), allow_missing=True)
    assert loaded.test is None and loaded.skipped == ("test1",)


def test_leaving_out_the_missing_hides_nothing_else(own: OwnData):
    own.add("gone", "train", (1, 2, "run"), features=False)
    own.add("bad", "train", (5, 4, "run"))
    message = complaint(own.config(), allow_missing=True)
    assert message.startswith("data check: 1 x end <= start, in 1 recording; the first: bad")


def test_a_label_that_training_does_not_have_is_a_problem_of_the_test_subset(own: OwnData):
    own.add("other", "test", (2, 3, "swim"), (4, 5, "swim"))
    with pytest.raises(DataProblems) as caught:
        load_data(own.config())
    (problem,) = caught.value.problems
    assert (problem.video, problem.kind) == ("other", "unknown label")
    assert problem.detail == "'swim' (2 instances) is none of the classes"
    assert names(load_data(own.config(), test=False).train) == ["one", "three"]


def test_a_wrong_stride_is_found_with_the_one_that_would_fit(own: OwnData):
    message = complaint(own.config(stride=8))
    assert "3 x length" in message and "stride 5 or fps" in message


def test_all_problems_are_told_at_once(own: OwnData):
    own.add("gone", "train", (1, 2, "run"), features=False)
    own.add("late", "test", (1, 2 * DURATION, "run"))
    own.database["one"].pop("fps")
    with pytest.raises(DataProblems) as caught:
        load_data(own.config())
    found = [(problem.video, problem.kind) for problem in caught.value.problems]
    assert found == [("one", "time grid"), ("gone", "missing features"), ("late", "outside the video")]


# The report


def test_report_of_good_data(own: OwnData):
    tables, problems = report_data(own.config())
    shown = plain(tables)
    assert problems == []
    assert all(word in shown for word in ("train", "test", "climb", "features of 2 of 2 recordings, width 3"))
    assert "2 recordings, 40 s in all" in shown and "an instance lasts 2.5 s" in shown  # the fingerprint in words


def test_report_lists_the_problems_instead_of_raising(own: OwnData):
    own.add("gone", "train", (1, 2, "run"), features=False)
    own.add("other", "test", (2, 3, "swim"))
    tables, problems = report_data(own.config())
    assert [(p.video, p.kind) for p in problems] == [("gone", "missing features"), ("other", "unknown label")]
    shown = plain(tables)
    assert len(tables) == 3 and "features of 2 of 3 recordings" in shown
    assert "1 x missing features, 1 x unknown label" in shown


def test_report_of_the_benchmark():
    tables, problems = report_data(EMBEDDED, seed=1)
    shown = plain(tables)
    assert problems == [] and len(tables) == 2 and "features of 6 of 6 recordings, width 32" in shown


# The embedded benchmark, in memory and as files


def test_the_benchmark_needs_no_files():
    bench = ZoomBench(sequences=6, test_sequences=2)
    own_seed = EMBEDDED.model_copy(update={"seed": 7})
    for data, seed in ((EMBEDDED, 4), (own_seed, 7)):  # its own seed comes before that of the training
        loaded = load_data(data, seed=4)
        assert_same(loaded.train, make_zoombench(bench, seed, "train"))
        assert_same(loaded.test, make_zoombench(bench, seed, "test"))
    assert load_data(EMBEDDED, train=False).train is None
    assert load_data(EMBEDDED, test=False).test is None


def assert_same(split: Split | None, expected: Split) -> None:
    """Everything a model or a metric sees of a split is the same."""
    assert split is not None and names(split) == names(expected)
    for sample, other in zip(split.samples, expected.samples, strict=True):
        assert np.array_equal(sample.features, other.features) and sample.grid == other.grid
        assert sample.duration == pytest.approx(other.duration, abs=1e-9)
        np.testing.assert_allclose(sample.segments.starts, other.segments.starts, atol=1e-9)
        np.testing.assert_allclose(sample.segments.ends, other.segments.ends, atol=1e-9)
        assert sample.segments.labels.tolist() == other.segments.labels.tolist()


def test_the_benchmark_as_files_is_the_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    quiet = Console(file=io.StringIO())
    monkeypatch.chdir(tmp_path)
    path = write_zoombench(Path("made/bench"), BENCH, seed=4, console=quiet)
    assert path == Path("made/bench/config.yaml") and quiet.file.getvalue() == ""  # type: ignore[attr-defined]
    assert path.read_text().startswith("# tzoom train made/bench/config.yaml")
    loaded = load_data(load_config(path).data)
    for split, subset in ((loaded.train, "train"), (loaded.test, "test")):
        expected = make_zoombench(BENCH, 4, subset)
        assert_same(split, expected)
        assert split is not None and split.classes == expected.classes
    monkeypatch.chdir("/")
    assert names(load_data(load_config(tmp_path / path).data).test) == ["test_0000", "test_0001"]
