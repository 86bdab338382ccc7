"""Tables and pose files as recordings of a model: channels by name, the rate of training, and what is said about it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from temporalzoom.config import InferenceConfig
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.recordings import RecordingReader, is_video
from temporalzoom.models import Outputs
from temporalzoom.runs.description import ModelDescription
from temporalzoom.signals.preparation import Framing, Preparation
from temporalzoom.timegrid import TimeGrid

N = 400
ROWS = np.stack([np.sin(np.arange(N) / 20), np.cos(np.arange(N) / 30)], axis=1).round(5).astype(np.float32)


def description(names=(), fills_gaps=False, **changes) -> ModelDescription:
    """A model of windows of 8 rows of two channels at 50 Hz."""
    preparation = Preparation(Framing(8, 4), fills_gaps, channel_names=names)
    width = 8 * 2 * (2 if fills_gaps else 1)
    return replace(
        ModelDescription("uniform-1", ("a",), TimeGrid(4, 8, 50), InferenceConfig(), width, preparation), **changes
    )


def reader(described: ModelDescription, **asked) -> RecordingReader:
    return RecordingReader(described, lambda settings: pytest.fail("no backbone is needed"), **asked)


def write(path, columns: dict, fps: float | None = 50.0, times=None):
    if fps is not None:
        columns = {"time_s": np.arange(N) / fps if times is None else times, **columns}
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def walk(tmp_path):
    return tmp_path / "walk.csv"


COLUMNS = {"left": ROWS[:, 0], "right": ROWS[:, 1]}


def test_a_table_is_its_array(walk, tmp_path):
    np.save(tmp_path / "walk.npy", ROWS)
    expected = reader(description()).read(tmp_path / "walk.npy")
    found = reader(description()).read(write(walk, COLUMNS))
    np.testing.assert_array_equal(found.features, expected.features)
    assert found.grid == expected.grid and found.duration == expected.duration == 8.0
    assert expected.notes == () and "regular" in found.notes[1]
    assert not is_video(walk)


def test_channels_by_name(walk):
    """Other columns are left out, an order of their own is no matter, and upper and lower case is none either."""
    plain = reader(description()).read(write(walk, COLUMNS))
    mixed = {"more": np.ones(N), "RIGHT": ROWS[:, 1], "left": ROWS[:, 0], "who": ["s1"] * 200 + ["s2"] * 200,
             "hand": ["l"] * 300 + ["r"] * 100}  # fmt: skip
    found = reader(description(("left", "right"))).read(write(walk, mixed))
    np.testing.assert_array_equal(found.features, plain.features)
    with pytest.raises(
        InputError, match=r"^has no channel 'up', 'down', which the model was trained with; it has 'left', 'r"
    ):
        reader(description(("left", "up", "down"))).read(write(walk, COLUMNS))
    with pytest.raises(InputError, match="the raw signal has 3 channels, the model was trained with 2"):
        reader(description()).read(write(walk, {"more": np.ones(N), **COLUMNS}))


def test_another_rate_is_resampled_and_said(walk):
    fast = np.repeat(ROWS, 2, axis=0)[:N]
    found = reader(description()).read(write(walk, {"left": fast[:, 0], "right": fast[:, 1]}, fps=100.0))
    assert found.grid == TimeGrid(4, 8, 50) and found.duration == 4.0
    assert found.notes[-1] == "Resampled from 100 to 50 Hz."
    windows = np.asarray(found.features).reshape(-1, 8, 2)
    np.testing.assert_allclose(windows[3, 0], ROWS[12], atol=0.05)


def test_a_rate_that_is_nearly_the_same_keeps_its_rows(walk):
    found = reader(description()).read(write(walk, COLUMNS, fps=49.9))
    assert found.grid.fps == pytest.approx(49.9) and found.duration == pytest.approx(N / 49.9)
    np.testing.assert_array_equal(np.asarray(found.features).reshape(-1, 8, 2)[0], ROWS[:8])


def test_without_a_clock_the_rate_is_that_of_training_or_the_one_asked_for(walk):
    write(walk, COLUMNS, fps=None)
    assert reader(description()).read(walk).grid == TimeGrid(4, 8, 50)
    found = reader(description(), fps=100).read(walk)
    assert found.grid == TimeGrid(4, 8, 50) and found.duration == 4.0 and "Resampled from 100 to 50 Hz." in found.notes


def test_gaps_need_a_model_that_knows_them(walk):
    times = np.arange(N) / 50 + (np.arange(N) >= 200) * 1.0
    write(walk, COLUMNS, times=times)
    with pytest.raises(InputError, match="the raw signal holds 100 values that are NaN"):
        reader(description()).read(walk)
    found = reader(description(fills_gaps=True)).read(walk)
    assert found.duration == 9.0 and np.asarray(found.features).reshape(-1, 8, 4)[:, :, 2:].sum() > 0


def test_arrays_are_as_they_were(tmp_path):
    path = tmp_path / "walk.npz"
    np.savez(path, features=ROWS, fps=100.0)
    assert reader(description()).read(path).duration == 4.0  # the archive says its rate
    asked = reader(description(), fps=25).read(path)
    assert asked.grid == TimeGrid(4, 8, 25) and asked.duration == 16.0  # and the user another
    features = description(preparation=Preparation(), input_width=2)
    assert reader(features).read(path).grid == TimeGrid(4, 8, 50)  # of features it is that of the video
    np.savez(path, features=ROWS, labels=np.arange(3), names=np.array(["x"]))
    np.testing.assert_array_equal(reader(features).read(path).features, ROWS)
    assert reader(description()).read(path).duration == 8.0


def test_a_table_of_features(walk):
    """Rows every 4 frames of 50 per second."""
    features = description(preparation=Preparation(), input_width=2)
    assert reader(features).read(write(walk, COLUMNS, fps=None)).grid == TimeGrid(4, 8, 50)
    same = reader(features).read(write(walk, COLUMNS, fps=12.5))
    assert same.grid == TimeGrid(4, 8, 50) and len(same.features) == N
    assert len(reader(features).read(write(walk, COLUMNS, fps=25.0)).features) == N // 2
    assert reader(features, fps=100).read(write(walk, COLUMNS, fps=25.0)).grid == TimeGrid(4, 8, 100)


def test_names_are_stored_and_old_descriptions_are_read():
    described = description(("left", "right"))
    document = json.loads(json.dumps(described.to_json()))
    assert ModelDescription.from_json(document, "x") == described
    del document["preparation"]["channel_names"]
    assert ModelDescription.from_json(document, "x").preparation.channel_names == ()


class Rows(torch.nn.Module):
    """Scores are the first channel of a window; every position answers for a position to either side."""

    def forward(self, features, mask):
        offsets = torch.ones(*features.shape[:2], 2)
        return Outputs(logits=features[..., :1], offsets=offsets, offset_log_variance=torch.zeros_like(offsets))


def test_the_localizer_says_what_it_noticed(walk):
    options = InferenceConfig(suppression="none", refine="none", min_score=0.0, threshold=0.0)
    localizer = Localizer(Rows(), description(inference=options))
    notes: list[str] = []
    found = localizer(write(walk, COLUMNS), note=notes.append)
    assert found == localizer(ROWS) and len(found) == (N - 8) // 4 + 1
    assert notes == ["Column 'time_s' is the time, in s: as the name 'time_s' says.", "50 rows per second, regular."]
    assert localizer.prepare(walk).notes == tuple(notes)
    with pytest.raises(InputError, match=rf"^{walk}: an empty table$"):
        walk.write_text("")
        localizer(walk)
