"""The description of a trained model: what it takes from a configuration, and that files give it back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.config import InferenceConfig, load_config
from temporalzoom.errors import InputError
from temporalzoom.inference.onnx_network import from_properties, to_properties
from temporalzoom.runs.description import ExportedGraph, ModelDescription, describe
from temporalzoom.signals.backbones import backbone
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.preparation import Framing, Preparation
from temporalzoom.timegrid import TimeGrid

COUNTS = st.integers(1, 500)
SETTINGS = st.builds(
    ExtractionSettings, st.text(), COUNTS, COUNTS, st.none() | st.floats(1, 100), st.dictionaries(st.text(), st.text())
)
DESCRIPTIONS = st.builds(
    ModelDescription,
    model=st.text(),
    classes=st.lists(st.text(st.characters(min_codepoint=1, codec="utf-8"), min_size=1), min_size=1).map(tuple),
    grid=st.builds(TimeGrid, st.floats(0.1, 100), st.floats(0, 100), st.floats(1, 100)),
    inference=st.builds(InferenceConfig, threshold=st.floats(0, 1), candidates=COUNTS, video_scores=st.none()),
    input_width=COUNTS,
    preparation=st.builds(
        Preparation, st.none() | st.builds(Framing, COUNTS, COUNTS), st.booleans(), st.text(), st.none() | COUNTS
    ),
    origin=st.none() | SETTINGS,
    video=st.none() | SETTINGS,
    oracle_reach=st.none() | COUNTS,
    prefix=st.text(),
    step=COUNTS,
    training=st.none() | st.just(load_config(None, ["model.width=16", "data.stride=4"])),
    graph=st.none() | st.builds(ExportedGraph, COUNTS, st.none() | COUNTS, st.none() | COUNTS, st.text()),
    version=st.text(),
)


@given(DESCRIPTIONS)
def test_both_files_give_back_what_was_written(described: ModelDescription):
    document = json.loads(json.dumps(described.to_json()))
    assert ModelDescription.from_json(document, "x") == described
    assert from_properties(to_properties(described), "x") == described


def test_an_exported_file_has_no_configuration(tiny_config):
    described = describe(tiny_config(), ("a", "b"), 8, TimeGrid(4, 8, 30))
    assert described.config == tiny_config()
    bare = ModelDescription("uniform-1", ("a",), TimeGrid(1, 1, 1), InferenceConfig(), 8)
    with pytest.raises(InputError, match="does not hold the configuration"):
        _ = bare.config


@pytest.mark.parametrize(("again", "what"), [("train", "train again"), ("export", "export again")])
def test_of_an_earlier_version(again: str, what: str):
    with pytest.raises(InputError, match=rf"^m: was written by an earlier version of temporalzoom; {what}$"):
        ModelDescription.from_json({"format": 1}, "m", again)


def test_what_a_configuration_says_about_recordings():
    def described(*overrides: str, **more) -> ModelDescription:
        config = load_config(None, ["data.source=folder", "data.stride=5", "data.window=10", "data.fps=25", *overrides])
        return describe(config, ("a",), 60, TimeGrid(5, 10, 25), **more)

    assert described().preparation == Preparation()
    raw = described("data.raw=true", "data.missing=interpolate", framing=Framing(10, 5))
    assert raw.preparation == Preparation(Framing(10, 5), fills_gaps=True) and raw.channels == 3
    poses = described("data.raw=true", "data.keypoints=xy", framing=Framing(10, 5))
    assert poses.preparation.keypoints == "xy" and poses.channels == 6  # 3 distances and 3 speeds, of 3 points
    assert described("data.resize=20").preparation.resize == 20
    origin, built = ExtractionSettings("motion", 5, 10), backbone("motion")
    assert described(origin=origin).origin == origin and described(origin=origin).video is None
    trained = described(origin=origin, framing=Framing(10, 5), backbone=built)
    assert trained.video == ExtractionSettings("motion", 5, 10, 25.0, built.options)
    assert trained.origin is None and trained.preparation == Preparation()
    assert described("model.name=tzn", "model.pruning=true", "model.paper.protection=oracle").oracle_reach == 3
