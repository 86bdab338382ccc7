"""Training as a user asks for it: a recipe's name, or a file with nothing but data paths."""

from pathlib import Path

import pytest
import yaml

import temporalzoom
from temporalzoom import Localizer, load_config
from temporalzoom.datasets.zoombench import ZoomBench
from temporalzoom.datasets.zoombench_files import write_zoombench
from temporalzoom.errors import InputError

QUICK = ["training.steps=2", "training.batch_size=2", "training.length=48"]
TOY = [*QUICK, "data.sequences=3", "data.test_sequences=1", "data.length=64", "training.accumulate=1"]


@pytest.fixture(scope="module")
def own_data(tmp_path_factory) -> Path:
    """Annotations and features as a user has them, and a file that says where they are, and nothing else."""
    folder = tmp_path_factory.mktemp("own")
    write_zoombench(folder, ZoomBench(sequences=3, test_sequences=2, length=96, dimension=8))
    data = {"annotations": "annotations.json", "features": "features", "stride": 4, "window": 8}
    (folder / "mine.yaml").write_text(yaml.safe_dump({"data": data}))
    return folder


def test_data_paths_are_enough(own_data, tmp_path, tzoom):
    run = tmp_path / "run"
    code, out, error = tzoom("train", own_data / "mine.yaml", "--out", run, *(f"--set={s}" for s in QUICK))
    assert code == 0 and "score it with: tzoom eval" in out, error
    config = load_config(run / "config.yaml")
    assert config.model == load_config().model  # the default is what is trained
    code, out, error = tzoom("eval", "--model", run)
    assert code == 0 and "mAP" in out, error


def test_the_paper_s_recipe_runs_at_toy_size(tmp_path):
    config = load_config("paper", [*TOY, "model.width=24", "model.paper.head_width=8", "training.warmup_steps=0"])
    run = temporalzoom.train(config, tmp_path)
    assert run.has_test and run.skipped == ()
    localizer = Localizer.load(run.checkpoint)
    assert localizer.model.heads.classes[0].out_features == 8
    assert len(localizer.model.shallow.layers) + len(localizer.model.deep) == 9
    scores = temporalzoom.evaluate(tmp_path)
    assert set(scores.summary()["mAP"]) == {"0.3", "0.4", "0.5", "0.6", "0.7"}


def test_a_recipe_by_name_and_overrides(tmp_path):
    run = temporalzoom.train("zoombench", tmp_path, overrides=[*TOY, "model.name=uniform-1", "model.width=8"])
    assert run.checkpoint.name == "step-0000002"
    with pytest.raises(InputError, match="did you mean 'zoombench'"):
        temporalzoom.train("zoombensh", tmp_path / "other")
    with pytest.raises(InputError, match=r"config\.changed"):
        temporalzoom.train(load_config("zoombench"), tmp_path / "other", overrides=["seed=1"])


def test_public_names_are_shown_and_lead_somewhere():
    assert dir(temporalzoom) == sorted(temporalzoom.__all__)
    for name in temporalzoom.__all__:
        assert getattr(temporalzoom, name) is not None
        assert name == "__version__" or getattr(temporalzoom, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = temporalzoom.nothing
