"""What stands beside feature files: read, compared with the configuration and with each other, kept with the model."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.runs.checkpoint import read_info
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.sidecars import common_settings, read_sidecar
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train

SWIN = {"backbone": "swin3d_t", "options": {"size": 112}, "stride": 4, "window": 16}
TINY = [f"model.{x}" for x in ("name=uniform-1", "width=8", "heads=2")] + ["training.steps=1", "training.batch_size=1"]


def features(folder: Path, name: str, **told: object) -> Path:
    """A feature file of 50 positions; with a description, by default the right one for 25 fps, if anything is told."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.npy"
    np.save(path, np.random.default_rng(len(name)).normal(size=(50, 6)).astype(np.float32))
    if told:
        usual = {"fps": 25.0, "requested_fps": None, "duration": 8.5, "length": 50, "width": 6}
        path.with_suffix(".json").write_text(json.dumps(SWIN | usual | told))
    return path


@pytest.fixture
def loaded(tmp_path):
    """`loaded("data.stride=4", fps=30)`: the training data of three recordings; keywords go into the annotations."""

    def load(*overrides: str, **recording: object):
        instance = {"label": "jump", "segment": [1.0, 2.0]}
        database = {n: {"subset": "train", "annotations": [instance]} | recording for n in ("a", "b", "c.d")}
        (tmp_path / "a.json").write_text(json.dumps({"database": database}))
        data = {"source": "folder", "annotations": str(tmp_path / "a.json"), "features": str(tmp_path / "features")}
        (tmp_path / "c.yaml").write_text(yaml.safe_dump({"data": data}))
        config = load_config(tmp_path / "c.yaml", [*TINY, *overrides])
        split = load_data(config.data).train
        assert split is not None
        return config, split

    return load


def test_grid_duration_and_origin_come_from_beside_the_features(loaded, tmp_path):
    """The video had 50 fps, its features were made at 25: the annotation file's rate is not theirs."""
    for name, duration in (("a", 8.5), ("b", 8.6), ("c.d", None)):
        features(tmp_path / "features", name, duration=duration, requested_fps=25.0)
    for overrides in ((), ("data.stride=4",), ("data.window=16", "data.fps=25")):
        config, split = loaded(*overrides, fps=50)
        assert [sample.grid for sample in split.samples] == [TimeGrid(4, 16, 25)] * 3
        assert [sample.duration for sample in split.samples] == [8.5, 8.6, (49 * 4 + 16) / 25]
        assert split.origin == ExtractionSettings("swin3d_t", 4, 16, 25.0, {"size": 112})
    checkpoint = train(config, split, tmp_path / "run")
    assert read_info(checkpoint).origin == split.origin
    told = json.loads((checkpoint / "checkpoint.json").read_text())
    del told["origin"]  # as before there was one
    (checkpoint / "checkpoint.json").write_text(json.dumps(told))
    assert read_info(checkpoint).origin is None and read_info(checkpoint).grid == TimeGrid(4, 16, 25)


def test_without_descriptions_nothing_changes(loaded, tmp_path):
    for name in ("a", "b", "c.d"):
        features(tmp_path / "features", name)
    with pytest.raises(InputError, match=r"data.stride"):
        loaded()
    (tmp_path / "features" / "a.json").write_text('{"camera": 3}')  # about something else
    _, split = loaded("data.stride=4", "data.fps=25")
    assert split.origin is None and split.samples[0].grid == TimeGrid(4, 4, 25)


@pytest.mark.parametrize(
    "override, words",
    [
        ("data.stride=8", "stride is 4, data.stride is 8"),
        ("data.window=4", "window is 16, data.window is 4"),
        ("data.fps=30", "fps is 29.97, data.fps is 30"),
    ],
)
def test_a_configuration_that_contradicts_is_refused(loaded, tmp_path, override, words):
    for name in ("a", "b", "c.d"):
        features(tmp_path / "features", name, fps=30000 / 1001)
    assert loaded("data.fps=29.97")[1].samples[2].grid.fps == 30000 / 1001  # the same rate, as people write it
    with pytest.raises(InputError, match=rf"3 x time grid.*a.json: {re.escape(words)}"):
        loaded(override)


@pytest.mark.parametrize(
    "told, words",
    [
        ({"backbone": "motion"}, 'b.json: backbone is "motion", that of .*a.json is "swin3d_t"'),
        ({"options": {"size": 224}}, r'b.json: options is {"size": 224}, that of .*a.json is {"size": 112}'),
        ({"stride": 2}, "b.json: stride is 2, that of .*a.json is 4"),
        ({"window": 32}, "b.json: window is 32, that of .*a.json is 16"),
        ({"length": 51}, "b.json: describes 51 positions, the features have 50"),
        ({"stride": 0}, "b.json: not a description of the features beside it: stride"),
        ({"fps": "fast"}, "b.json: not a description .*'fast'"),
        ({"options": [1]}, "b.json: not a description .*options"),
    ],
)
def test_descriptions_that_contradict_each_other_are_refused(loaded, tmp_path, told, words):
    for name in ("a", "b", "c.d"):
        features(tmp_path / "features", name, fps=25.0)
    features(tmp_path / "features", "b", **{"fps": 25.0} | told)
    with pytest.raises(InputError, match=words):
        loaded()


def test_what_is_common_to_some_videos(tmp_path):
    """Their own rates may differ; one of unknown origin makes all unknown."""

    def common(*told: dict[str, object]) -> ExtractionSettings | None:
        paths = [features(tmp_path, f"v{index}", **t) for index, t in enumerate(told)]
        found = common_settings([read_sidecar(path) for path in paths])
        [path.with_suffix(".json").unlink(missing_ok=True) for path in paths]
        return found

    own, asked = {"fps": 25.0}, {"fps": 25.0, "requested_fps": 25.0}
    made = ExtractionSettings("swin3d_t", 4, 16, None, {"size": 112})
    assert common(own, {"fps": 30.0}) == made
    assert common(own, asked) == common(asked, asked) == ExtractionSettings("swin3d_t", 4, 16, 25.0, {"size": 112})
    assert common({"fps": 30.0}, asked) == made
    assert common(own, {}) is None and common(own, {"window": 8}) is None and common() is None
    (tmp_path / "v0.json").write_text("{")
    with pytest.raises(InputError, match=r"v0.json: not a description"):
        read_sidecar(tmp_path / "v0.npy")
