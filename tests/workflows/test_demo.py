"""The demo, made small: what it writes, and that its page shows what it promises."""

import json
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.datasets.zoombench import make_zoombench
from temporalzoom.inference.localizer import Localizer
from temporalzoom.signals.decoding import probe
from temporalzoom.workflows import demo, demo_report
from temporalzoom.workflows import demo_video as video_demo
from temporalzoom.workflows.evaluation import evaluate_split

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
        patch.setattr(video_demo, "run_video_act", partial(video_demo.run_video_act, clips=3, steps=3))
        patch.setattr(video_demo, "SIZE", 32)
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


def test_the_last_act_leaves_files_that_the_report_links(out):
    act = json.loads((out / "results.json").read_text())["video"]
    assert act["clips"] == 3 and set(act["mAP"]) == {"0.3", "0.5", "0.7"}
    page = (out / "report.html").read_text()
    stem = Path(act["clip"]).stem
    for name in (f"{stem}.json", f"{stem}.csv", f"{stem}.vtt", f"{stem}-preview.mp4"):
        assert (out / "video" / name).stat().st_size > 0 and f'href="video/{name}"' in page
    assert f'src="video/{stem}-preview.mp4"' in page
    assert probe(out / "video" / f"{stem}-preview.mp4").duration == pytest.approx(20.0, abs=0.1)


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
        "What depth buys",
        "<svg",
    ):
        assert words in page, words


def test_the_budget_curve_runs_from_shallow_only_to_everywhere(out):
    results = json.loads((out / "results.json").read_text())
    *points, trained = results["budget_curve"]
    assert [point["budget"] for point in points] == [0, 0.05, 0.1, 0.2, 0.4, 1]
    costs = [point["flops_ratio"] for point in points]
    assert costs == sorted(costs) and 0 < costs[0] < costs[1] < costs[-1]
    assert all(0 <= point["average_mAP"] <= 1 for point in points)
    # The point as trained is the system of the tables.
    tzn, uniform = results["systems"]["tzn"], results["systems"]["uniform-6"]
    assert trained == {
        "budget": None,
        "average_mAP": pytest.approx(tzn["average_mAP"]),
        "tightest_mAP": pytest.approx(tzn["mAP"]["0.9"]),
        "flops_ratio": pytest.approx(tzn["flops"] / uniform["flops"]),
    }


def test_a_budget_of_nothing_runs_no_deep_layer_and_the_model_stays_as_it_was(out, monkeypatch):
    config = demo.demo_config("tzn", seed=1).data.zoombench.model_copy(update={"test_sequences": 2, "length": 128})
    test = make_zoombench(config, 1, "test")
    systems = {}
    for name in ("uniform-6", "tzn"):
        localizer = Localizer.load(out / name)
        systems[name] = demo.System(localizer, evaluate_split(localizer, test), out / name, 0.0)
    model = systems["tzn"].localizer.model
    deep_passes = []
    hook = model.deep[0].register_forward_hook(lambda *_: deep_passes.append(model.budget))
    for before in (None, 0.3):
        deep_passes.clear()
        model.budget = before
        demo_report.budget_curve(systems["tzn"], systems["uniform-6"], test)
        assert model.budget == before
        assert 0.0 not in deep_passes and {0.05, 0.1, 0.2, 0.4, 1.0, before} <= set(deep_passes)
    hook.remove()
    monkeypatch.setattr(demo_report, "evaluate_split", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        demo_report.budget_curve(systems["tzn"], systems["uniform-6"], test)
    assert model.budget == before


@pytest.mark.parametrize(("score", "less"), [("average_mAP", 0), ("tightest_mAP", 40)])
def test_the_figures_show_every_system_and_budget(score, less):
    def system(flops, score):
        made = Mock(cost={"flops": flops})
        made.summary.return_value = {"average_mAP": score, "mAP": {"0.9": score - 0.4}}
        return made

    systems = {"uniform-6": system(200, 0.5), "uniform-6+bdr": system(210, 0.6), "tzn": system(80, 0.7)}
    curve = [
        {"budget": 0.0, "average_mAP": 0.55, "tightest_mAP": 0.15, "flops_ratio": 0.3},
        {"budget": 1.0, "average_mAP": 0.72, "tightest_mAP": 0.32, "flops_ratio": 1.2},
        {"budget": None, "average_mAP": 0.7, "tightest_mAP": 0.3, "flops_ratio": 0.4},
    ]
    assert demo_report.budget_points(systems, curve, score) == {
        "uniform-6": [(1.0, pytest.approx(50 - less))],
        "uniform-6+bdr": [(1.05, pytest.approx(60 - less))],
        "tzn, by budget": [(0.3, pytest.approx(55 - less)), (1.2, pytest.approx(72 - less))],
        "tzn, as trained": [(0.4, pytest.approx(70 - less))],
    }


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
    shortened = load_config(REPOSITORY / "configs" / file, [demo.STEPS])
    assert shortened == demo.demo_config(system)
