"""The demo, made small: what it writes, and that its page shows what it promises."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.experiments import demo

REPOSITORY = Path(__file__).resolve().parents[2]
SMALLER = (
    *demo.RECIPE,
    "model.width=16",
    "model.heads=2",
    "training.steps=6",
    "training.batch_size=2",
    "data.zoombench.sequences=3",
    "data.zoombench.test_sequences=2",
    "data.zoombench.length=128",
)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "RECIPE", SMALLER)
        demo.run_demo(folder, seed=1, console=Console(quiet=True))
    return folder


def test_results_hold_every_system_and_threshold(out):
    results = json.loads((out / "results.json").read_text())
    assert set(results["systems"]) == {"uniform-6", "uniform-6+bdr", "tzn"}
    for scores in results["systems"].values():
        assert set(scores["mAP"]) == {"0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"}
        shown = [scores["mAP"][t] for t in ("0.3", "0.4", "0.5", "0.6", "0.7")]
        assert scores["average_mAP"] == pytest.approx(sum(shown) / 5)
        assert {"boundary_error_frames", "training_seconds", "localization_seconds"} <= set(scores)
        assert scores["flops"] == sum(scores["flops_by_part"].values()) > 0
        assert scores["latency_ms"] > 0 and scores["parameters"] > 1000
    assert set(results["refinement"]) == {"none", "snap", "newton", "fuse"}


def test_the_report_is_one_file_that_shows_everything(out):
    page = (out / "report.html").read_text()
    assert "http://" not in page and "https://" not in page
    for words in (
        "Scores",
        "truth above",
        "distance fields",
        "Precision over recall",
        "uniform-6+bdr",
        "Where depth is spent",
        "<svg",
    ):
        assert words in page, words


def test_predictions_are_in_the_form_of_the_field(out):
    found = json.loads((out / "predictions.json").read_text())["results"]
    assert set(found) == {"test_0000", "test_0001"}


def test_the_same_seed_gives_the_same_predictions(out, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "RECIPE", SMALLER)
    demo.run_demo(tmp_path, seed=1, console=Console(quiet=True))
    assert (tmp_path / "predictions.json").read_bytes() == (out / "predictions.json").read_bytes()


def test_a_result_table_has_a_row_per_system(out):
    console = Console(width=140, record=True, quiet=False, file=open("/dev/null", "w"))
    console.print(demo.results_table(json.loads((out / "results.json").read_text())))
    text = console.export_text()
    assert "uniform-6+bdr" in text and "@0.9" in text


@pytest.mark.parametrize(("file", "system"), [("zoombench.yaml", "uniform-6+bdr"), ("zoombench_tzn.yaml", "tzn")])
def test_the_config_files_are_the_recipes_of_the_demo(file, system):
    assert load_config(REPOSITORY / "configs" / file) == demo.demo_config(system)
