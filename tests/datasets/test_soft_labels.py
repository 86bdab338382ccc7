"""`data.soft_labels`: trained on in the place of annotations, never scored against."""

import json

import numpy as np
import pytest

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import write_features


@pytest.fixture
def own(tmp_path):
    entry = {"fps": 1.0, "duration": 40.0, "annotations": [{"label": "wave", "segment": [2, 9]}]}
    database = {"a": {**entry, "subset": "train"}, "b": {**entry, "subset": "test"}}
    (tmp_path / "truth.json").write_text(json.dumps({"database": database}))
    for name in database:
        write_features(tmp_path / "features" / f"{name}.npy", np.zeros((40, 3), np.float32))
    return tmp_path


def config(folder, *more):
    paths = (f"data.annotations={folder / 'truth.json'}", f"data.features={folder / 'features'}")
    return load_config(None, [*paths, "data.stride=1", f"data.soft_labels={folder / 'soft.json'}", *more])


def test_they_are_trained_on_and_not_scored_against(own):
    soft = Segments([2.5, 20], [9, 25], ["wave", "wave"], [0.9, 0.25])
    write_segments(own / "soft.json", {"a": soft})
    data = load_data(config(own).data)
    assert data.train.samples[0].segments == soft
    assert data.test.samples[0].segments.scores.tolist() == [1.0]
    # Scored on what it was trained on, it is still scored against what was annotated.
    same = load_data(config(own, "data.test_subset=train").data)
    assert same.train.samples[0].segments == soft and len(same.test.samples[0].segments) == 1


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"b": Segments([2], [9], ["wave"])}, "has no entry for recording 'a'"),
        ({"a": Segments([2], [9], ["wve"])}, "video 'a', prediction 0: no class 'wve'; did you mean 'wave'"),
        ({"a": Segments([2], [9], ["wave"], [1.5])}, "'score' must be from 0 to 1, got 1.5"),
        ({"a": Segments([50], [60], ["wave"])}, "starts at 50 s, the recording ends at 40 s"),
        ({"a": Segments.empty()}, "holds no instance to learn from"),
    ],
)
def test_what_does_not_fit_is_named(own, found, message):
    write_segments(own / "soft.json", found)
    with pytest.raises(InputError, match=r"data\.soft_labels: .*soft\.json") as error:
        load_data(config(own).data)
    assert message in str(error.value)


def test_a_network_that_cannot_use_them_refuses_them(own):
    with pytest.raises(InputError, match=r"data\.soft_labels: has no effect here: bmn"):
        config(own, "model.name=bmn")
