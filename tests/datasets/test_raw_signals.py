"""Raw signals: from an annotation file and one archive of arrays to samples, a trained run, and its segments."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from torch import nn

from temporalzoom.config import DataConfig, FolderData, InertialData, load_config
from temporalzoom.datasets.report import report_data
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import framing_of, load_data, open_source
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.runs.description import ModelDescription
from temporalzoom.segments import Segments
from temporalzoom.signals.preparation import Framing, fill_missing, pose_geometry
from temporalzoom.timegrid import TimeGrid
from temporalzoom.workflows.evaluate import localize_split

ROWS, FPS, CHANNELS = 123, 20.0, 3  # 123 rows: windows leave some of them over at the end
RATS = ("rat1a", "rat1b", "rat4a", "rat4b")
TINY = """
model.name=uniform-1 model.width=16 model.heads=2 model.window=4 inference.threshold=0
training.steps=3 training.batch_size=2 training.length=12 training.warmup_steps=0
inference.certainty=0
""".split()
Tzoom = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`rats.json` names no subsets; `pose.npz` holds the raw signals, `files/` the same one by one."""
    random = np.random.default_rng(0)
    signals = {name: random.normal(size=(ROWS, CHANNELS)).astype(np.float32) for name in RATS}
    annotations = [
        {"label": "rest", "segment": [0.0, 1.0]},
        {"label": "groom", "segment": [1.0, 2.5]},
        {"label": "rear", "segment": [3.0, 6.1]},
    ]
    database: dict[str, Any] = {name: {"fps": FPS, "annotations": annotations} for name in RATS}
    database["rat1b"] = {"fps": FPS, "annotations": []}
    (tmp_path / "rats.json").write_text(json.dumps({"database": database}))
    np.savez(tmp_path / "pose.npz", **signals)
    (tmp_path / "files").mkdir()
    for name, signal in signals.items():
        np.save(tmp_path / "files" / f"{name}.npy", signal)
    return tmp_path


def settings(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "source": "folder", "annotations": str(folder / "rats.json"), "features": str(folder / "pose.npz"),
        "raw": True, "stride": 5, "window": 10, "test_recordings": ["rat4*"], **changes,
    }  # fmt: skip


def config(folder: Path, **changes: Any) -> DataConfig:
    return FolderData.model_validate(settings(folder, **changes))


def signal_of(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / "files" / f"{name}.npy")


def spoil(folder: Path, name: str) -> np.ndarray:
    """Gaps in one recording, in the archive and in its file."""
    signals = {key: signal_of(folder, key) for key in RATS}
    signals[name][10:20, 1] = np.nan
    np.savez(folder / "pose.npz", **signals)
    np.save(folder / "files" / f"{name}.npy", signals[name])
    return signals[name]


def both(data: DataConfig) -> tuple[Split, Split]:
    loaded = load_data(data)
    assert loaded.train is not None and loaded.test is not None
    return loaded.train, loaded.test


def complaint(data: DataConfig) -> str:
    with pytest.raises(InputError) as caught:
        load_data(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Samples


@pytest.mark.parametrize("place", ["pose.npz", "files"])
def test_windows_are_cut_from_an_archive_or_a_folder(folder: Path, place: str):
    train, test = both(config(folder, features=folder / place))
    assert [s.name for s in train.samples] == ["rat1a", "rat1b"] and [s.name for s in test.samples] == [
        "rat4a",
        "rat4b",
    ]
    sample, signal = test.samples[0], signal_of(folder, "rat4a")
    assert train.input_width == sample.features.shape[1] == 10 * CHANNELS and train.classes == ("groom", "rear", "rest")
    assert len(sample) == len(sample.features) == (ROWS - 10) // 5 + 1
    np.testing.assert_array_equal(sample.features[3], signal[15:25].ravel())
    assert sample.grid == TimeGrid(5, 10, FPS) and sample.duration == ROWS / FPS  # rows left over are time too


def test_without_a_window_it_is_the_stride(folder: Path):
    assert framing_of(config(folder, window=None)) == Framing(5, 5)
    assert framing_of(config(folder, raw=False)) is None
    assert framing_of(InertialData(source="sbhar", stride=5, window=10)) == Framing(10, 5)


def test_not_raw_the_same_files_are_features(folder: Path):
    train, _ = both(config(folder, raw=False, stride=1, window=1))
    assert train.input_width == CHANNELS and train.samples[0].framing is None and len(train.samples[0]) == ROWS


def test_background_is_no_class_and_no_instance(folder: Path):
    train, test = both(config(folder, background=["rest"]))
    assert train.classes == ("groom", "rear")
    assert [list(s.segments.labels) for s in train.samples + test.samples] == [
        ["groom", "rear"], [], ["groom", "rear"], ["groom", "rear"],
    ]  # fmt: skip
    said = "data.background: no class 'sleep'; there are groom, rear, rest"
    assert complaint(config(folder, background=["sleep"])) == said


def test_gaps_are_an_error_or_filled(folder: Path):
    signal = spoil(folder, "rat4b")
    assert "rat4b: NaN or Inf: 10 of 369 values" in complaint(config(folder))
    train, test = both(config(folder, missing="interpolate"))
    assert train.input_width == 10 * 2 * CHANNELS  # also where nothing is missing
    np.testing.assert_array_equal(test.samples[1].signal, fill_missing(signal))
    np.testing.assert_array_equal(test.samples[1].features[1].reshape(10, 6)[:, 3:], [[0, 0, 0]] * 5 + [[0, 1, 0]] * 5)


def test_poses_become_their_geometry(folder: Path):
    train, _ = both(config(folder, keypoints="x"))
    assert train.input_width == 10 * (3 + 3)  # distances of three pairs, speeds of three points
    expected = pose_geometry(signal_of(folder, "rat1a"), "x")
    np.testing.assert_array_equal(train.samples[0].signal, expected)
    assert "3 channels are not" in complaint(config(folder, keypoints="xy"))
    spoil(folder, "rat4b")
    assert "rat4b: NaN or Inf" in complaint(config(folder, keypoints="x"))
    train, _ = both(config(folder, keypoints="x", missing="interpolate"))
    assert train.input_width == 10 * (3 + 3 + 3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["data.keypoints=xy"], "keypoints: are those of raw poses; needs raw: true"),
        (["data.keypoints=cd", "data.raw=true"], "keypoints: cd has no coordinate"),
        (["data.keypoints=X"], "data.keypoints"),
    ],
)
def test_keypoints_that_cannot_be(changes: list[str], said: str):
    with pytest.raises(InputError, match=said):
        load_config(None, changes)


def test_durations_are_checked_in_rows(folder: Path):
    database = json.loads((folder / "rats.json").read_text())
    database["database"]["rat1a"]["duration"] = 2 * ROWS / FPS
    (folder / "rats.json").write_text(json.dumps(database))
    assert "rat1a: length: 123 features are 6.15 s" in complaint(config(folder))
    database["database"]["rat1a"]["duration"] = ROWS / FPS + 0.1
    (folder / "rats.json").write_text(json.dumps(database))
    assert both(config(folder))[0].samples[0].duration == ROWS / FPS + 0.1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stride": 2.5}, "data.stride: must be a whole number of rows to cut a raw signal, got 2.5"),
        ({"window": 7.5}, "data.window: must be a whole number of rows to cut a raw signal, got 7.5"),
        ({"window": 0}, "data.window: must be a whole number of rows to cut a raw signal, got 0"),
        ({"stride": None}, "data.stride: how many frames lie between two feature vectors? A number is needed"),
        ({"test_recordings": ["cat*"]}, "data.test_recordings: no recording is called 'cat*'"),
        ({"leave_out": "rat9"}, "data.leave_out: no subject 'rat9'; there are rat1a, rat1b, rat4a, rat4b"),
        ({"validation_fold": 1}, "data.validation_fold: needs at least 4 subjects, there are 2"),
    ],
)
def test_settings_that_do_not_fit(folder: Path, changes: dict[str, Any], said: str):
    assert complaint(config(folder, **changes)) == said


def test_raw_signals_cannot_be_resized():
    with pytest.raises(InputError, match=r"data\.resize: has no effect here: windows are cut from raw signals"):
        load_config(None, ["data.raw=true", "data.resize=9"])


def test_a_damaged_archive(folder: Path):
    (folder / "pose.npz").write_bytes((folder / "pose.npz").read_bytes()[:300])
    assert complaint(config(folder)).startswith(f"data.features: {folder / 'pose.npz'}: not an .npz archive")


def test_a_recording_that_the_archive_does_not_have(folder: Path):
    np.savez(folder / "pose.npz", **{name: signal_of(folder, name) for name in RATS[1:]})
    assert f"rat1a: missing features: no array rat1a in {folder / 'pose.npz'}" in complaint(config(folder))


def test_the_report_reads_raw_signals(folder: Path):
    tables, problems = report_data(config(folder))
    assert problems == [] and len(tables) > 2  # two subsets, and the fingerprint in words


def test_lists_in_a_configuration(folder: Path):
    assert load_config(None, ["data.test_recordings=[rat4*, cat]"]).data.test_recordings == ("rat4*", "cat")
    with pytest.raises(InputError, match=r"data.test_recordings: must be a list, got 'rat4\*'"):
        load_config(None, ["data.test_recordings=rat4*"])


def test_paths_of_a_file_start_at_its_folder(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("data: {source: tug, root: phone}")
    assert load_config(tmp_path / "a.yaml").data.root == tmp_path / "phone"


def test_real_poses(shared_data: Path):
    folder = shared_data / "rats"
    if not folder.is_dir():
        pytest.skip("the rats are not among the data sets beside this checkout (../shared/data/rats)")
    data = FolderData.model_validate({
        "source": "folder", "annotations": folder / "coarse.json", "features": folder / "pose.npz",
        "raw": True, "stride": 4, "window": 8, "missing": "interpolate",
    })  # fmt: skip
    annotations, store = open_source(data)
    for name in annotations.recordings:
        signal = store.read(name)
        assert signal is not None and np.isfinite(signal).all()
        flags = signal[:, signal.shape[1] // 2 :]
        assert set(np.unique(flags)) <= {0.0, 1.0}


# A run: trained, evaluated, and used on files


PREPARED: list[dict[str, Any]] = [
    {"missing": "error"},
    {"missing": "interpolate"},
    {"missing": "interpolate", "keypoints": "x"},  # three points on a line
    {"missing": "error", "derivatives": True},
    {"missing": "interpolate", "derivatives": True},
]


@pytest.fixture(params=PREPARED, ids=["as-it-is", "gaps-filled", "keypoints", "derivatives", "gaps-and-derivatives"])
def run(request: pytest.FixtureRequest, folder: Path, tzoom: Tzoom) -> Path:
    if request.param["missing"] == "interpolate":
        spoil(folder, "rat4a")
    (folder / "rats.yaml").write_text(yaml.safe_dump({"data": settings(folder, **request.param)}))
    code, _, error = tzoom("train", folder / "rats.yaml", *TINY, "augment.shift=true", "--out", folder / "run")
    assert code == 0, error
    return folder / "run"


def test_a_raw_file_gives_the_segments_of_its_evaluation(run: Path, folder: Path, tzoom: Tzoom):
    localizer = Localizer.load(run)
    _, test = both(load_config(run / "config.yaml").data)
    expected = localize_split(localizer, test)
    out = folder / "found.json"
    code, _, error = tzoom("localize", folder / "files", "--model", run, "--threshold", "0", "--out", out)
    assert code == 0, error
    results = json.loads(out.read_text())["results"]
    assert set(results) == set(RATS)
    for sample in test.samples:
        found = Segments.from_records(results[sample.name])
        assert len(found) == len(expected[sample.name]) > 3
        assert list(found.labels) == list(expected[sample.name].labels)
        for name in ("starts", "ends", "scores"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected[sample.name], name), atol=1e-3)
        signal = signal_of(folder, sample.name)
        np.testing.assert_array_equal(localizer.prepare(signal).features, sample.features)
        assert localizer(signal, duration=sample.duration, threshold=0.0) == expected[sample.name]


def test_a_run_of_raw_signals_is_evaluated(run: Path, tzoom: Tzoom):
    code, out, error = tzoom("eval", "--model", run, "--json")
    assert code == 0 and 0 <= json.loads(out)["average"] <= 1, error


def test_signals_that_do_not_fit_the_run(run: Path, folder: Path, tzoom: Tzoom):
    localizer = Localizer.load(run)
    with pytest.raises(InputError, match="the raw signal has 4 channels, the model was trained with 3"):
        localizer.prepare(np.zeros((50, 4)))
    with pytest.raises(InputError, match=r"at least one row, \(N, C\); got shape \(0, 3\)"):
        localizer.prepare(np.zeros((0, 3)))
    assert len(localizer(np.zeros((2, 3)), threshold=0.0)) > 0  # shorter than a window
    for option in ("--stride", "--window"):
        code, _, error = tzoom("localize", folder / "files", "--model", run, option, "4")
        assert code == 2 and f"{option[2:]}: the model cuts its own windows from raw signals (10 rows every 5)" in error


def test_prepare_leaves_the_features_of_other_models_alone():
    described = ModelDescription("some", ("a",), TimeGrid(1, 1, 1), load_config().inference, 4)
    features = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    np.testing.assert_array_equal(Localizer(nn.Identity(), described).prepare(features).features, features)
