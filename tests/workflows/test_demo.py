"""The demo, made small: what it writes, and that its page shows what it promises."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from small_demo import SMALL_SYSTEMS, SMALLER, make_demo_small
from temporalzoom import interrupts
from temporalzoom.cli import app, runs
from temporalzoom.config import load_config
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.signals.decoding import probe
from temporalzoom.training import TrainingInterrupted
from temporalzoom.viewer.demo_report import budget_points
from temporalzoom.workflows import demo, demo_measures
from temporalzoom.workflows.evaluate import evaluate_split

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        make_demo_small(patch)
        log = io.StringIO()
        demo.run_demo(folder, seed=1, console=Console(file=log))
        (folder / "log.txt").write_text(log.getvalue())
    return folder


def test_every_act_announces_itself(out):
    log = (out / "log.txt").read_text()
    numbers = re.findall(r"^(\d+)/8 (\w+)", log, re.MULTILINE)
    assert [int(number) for number, _ in numbers] == list(range(1, 9))
    assert [word for _, word in numbers][:4] == ["training", "training", "training", "measuring"]
    assert log.count("scoring") == 4 and "writing the report" in log
    assert re.search(r"uniform-6: 6/6 steps, 100 %, took \d:\d\d, loss", log)


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
    assert 'src="data:video/mp4;base64,' in page and 'src="video' not in page  # a mailed page still plays
    assert probe(out / "video" / f"{stem}-preview.mp4").duration == pytest.approx(20.0, abs=0.1)


def test_the_report_is_one_file_that_shows_everything(out):
    page = (out / "report.html").read_text()
    assert "http://" not in page and "https://" not in page
    for words in (
        "Accuracy",
        "truth above",
        "distance fields",
        "Precision over recall",
        "uniform-6+bdr",
        "Where depth is spent",
        "Accuracy over cost",
        "<svg",
    ):
        assert words in page, words
    numbers = {kind: re.findall(rf"<b>{kind} (\d+)\.</b> [^<]", page) for kind in ("Table", "Figure")}
    for kind, shown in (("Table", page.count("<table>")), ("Figure", page.count('<figure class="plot">'))):
        assert numbers[kind] == [str(i + 1) for i in range(shown)], kind
    for term in ("BDR", "tIoU", "mAP"):  # explained where it first stands
        assert page[page.index(term) - 1] == "("


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
    test = make_zoombench(ZoomBench(test_sequences=2, length=128), 1, "test")
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
        demo_measures.budget_curve(systems["tzn"], systems["uniform-6"], test, demo_measures.SILENT)
        assert model.budget == before
        assert 0.0 not in deep_passes and {0.05, 0.1, 0.2, 0.4, 1.0, before} <= set(deep_passes)
    hook.remove()
    monkeypatch.setattr(demo_measures, "evaluate_split", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        demo_measures.budget_curve(systems["tzn"], systems["uniform-6"], test, demo_measures.SILENT)
    assert model.budget == before


@pytest.mark.parametrize(("score", "less"), [("average_mAP", 0), ("tightest_mAP", 40)])
def test_the_figures_show_every_system_and_budget(score, less):
    def system(flops, score):
        return {"flops": flops, "average_mAP": score, "mAP": {"0.9": score - 0.4}}

    results = {
        "baseline": "uniform-6",
        "adaptive": "tzn",
        "systems": {"uniform-6": system(200, 0.5), "uniform-6+bdr": system(210, 0.6), "tzn": system(80, 0.7)},
        "budget_curve": [
            {"budget": 0.0, "average_mAP": 0.55, "tightest_mAP": 0.15, "flops_ratio": 0.3},
            {"budget": 1.0, "average_mAP": 0.72, "tightest_mAP": 0.32, "flops_ratio": 1.2},
            {"budget": None, "average_mAP": 0.7, "tightest_mAP": 0.3, "flops_ratio": 0.4},
        ],
    }
    assert budget_points(results, score) == {
        "uniform-6": [(1.0, pytest.approx(50 - less))],
        "uniform-6+bdr": [(1.05, pytest.approx(60 - less))],
        "tzn, by budget": [(0.3, pytest.approx(55 - less)), (1.2, pytest.approx(72 - less))],
        "tzn, as trained": [(0.4, pytest.approx(70 - less))],
    }


def test_predictions_are_in_the_form_of_the_field(out):
    found = json.loads((out / "predictions.json").read_text())["results"]
    assert set(found) == {"test_0000", "test_0001"}


def test_without_pyav_everything_but_the_video(out, tmp_path, monkeypatch):
    """A plain installation; and the same seed gives the same predictions."""
    monkeypatch.setattr(demo, "SYSTEMS", SMALL_SYSTEMS)
    monkeypatch.setitem(sys.modules, "av", None)
    log = io.StringIO()
    results = demo.run_demo(tmp_path, seed=1, console=Console(file=log, width=200))
    first, *rest = log.getvalue().splitlines()
    assert "video" in first and 'pip install "temporalzoom[video]"' in first  # before minutes of training
    assert not any("PyAV" in line for line in rest) and "1/7 training uniform-6" in rest
    assert results["video"] is None and not (tmp_path / "video").exists()
    page = (tmp_path / "report.html").read_text()
    assert "<video" not in page and "pip install &quot;temporalzoom[video]&quot;" in page
    assert (tmp_path / "predictions.json").read_bytes() == (out / "predictions.json").read_bytes()


def test_settings_for_all_systems_and_no_video_act(tmp_path, out):
    """As benchmarks/zoombench.py runs it: the same systems, and no word about videos."""
    log = io.StringIO()
    results = demo.run_demo(tmp_path, 1, Console(file=log, width=200), overrides=SMALLER, video=False)
    assert "video" not in results and "video" not in log.getvalue() and "7/7" in log.getvalue()
    assert "From a video file" not in (tmp_path / "report.html").read_text()
    assert (tmp_path / "predictions.json").read_bytes() == (out / "predictions.json").read_bytes()
    with pytest.raises(InputError, match=r"model\.width"):
        demo.run_demo(tmp_path, 1, Console(quiet=True), overrides=["model.widht=8"])
    assert (tmp_path / "report.html").is_file()  # of the earlier run


@pytest.mark.parametrize(
    ("act", "stop", "line"),
    [
        ("train", TrainingInterrupted(Path("saved") / "here", 3), f"stopped at step 3; saved {Path('saved') / 'here'}"),
        ("measure_costs", KeyboardInterrupt(), ""),
        ("write_demo_report", KeyboardInterrupt(), ""),
    ],
)
def test_an_interrupt_leaves_no_report(act, stop, line, tmp_path, monkeypatch):
    (tmp_path / "report.html").write_text("of an earlier run")
    monkeypatch.setattr(demo, "SYSTEMS", SMALL_SYSTEMS)
    monkeypatch.setattr(demo, "videos_can_be_read", lambda: False)
    monkeypatch.setattr(demo, act, Mock(side_effect=stop))
    with pytest.raises(KeyboardInterrupt) as caught:
        demo.run_demo(tmp_path, seed=1, console=Console(quiet=True))
    assert str(caught.value) == line
    assert not (tmp_path / "report.html").exists() and not (tmp_path / "results.json").exists()


@pytest.mark.parametrize(
    ("stop", "line"),
    [(KeyboardInterrupt(), "stopped"), (KeyboardInterrupt("stopped at [b]3[/b]"), "stopped at [b]3[/b]")],
)
def test_the_command_prints_one_line_on_ctrl_c(stop, line, monkeypatch):
    monkeypatch.setattr(demo, "run_demo", Mock(side_effect=stop))
    monkeypatch.setattr(interrupts, "_received", [])  # no signal of an earlier test
    monkeypatch.setattr(runs, "notes", Console(file=(log := io.StringIO())))
    assert CliRunner().invoke(app, ["demo"]).exit_code == 130
    assert log.getvalue() == f"{line}\n"


def test_the_command_without_the_video_act(out, monkeypatch):
    results = json.loads((out / "results.json").read_text()) | {"video": None}
    monkeypatch.setattr(demo, "run_demo", lambda *_: results)
    monkeypatch.setattr(runs, "screen", Console(file=(log := io.StringIO())))
    assert CliRunner().invoke(app, ["demo", "--out", str(out)]).exit_code == 0
    assert "video:" not in log.getvalue() and "report: " in log.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("wait_for", ["ZoomBench:", "/400 steps"])
def test_ctrl_c_is_one_line_and_130(wait_for, tmp_path):
    """The whole program, stopped after it printed these words: at the first training, and in the middle of it."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from temporalzoom.cli import main; main()", "demo", "--out", str(tmp_path)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "300"},
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if wait_for in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    printed, rest = process.communicate(timeout=60)
    *before, last = rest.splitlines()
    assert process.returncode == 130 and printed == "", rest
    assert last.startswith("stopped") and "Traceback" not in rest and len(before) <= 2, rest
    assert not (tmp_path / "report.html").exists()


def test_the_pictures_of_the_readme_are_drawn_from_a_demo(out, tmp_path):
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "pictures.py"), str(out), "--out", str(tmp_path)]
    options = ["--seconds", "0", "12", "--clip-seconds", "3", "4", "--threshold", "0"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run([*command, *options], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "timeline.png") as picture:
        assert picture.width == 1800 and len(picture.convert("RGB").getcolors(10**6) or []) > 10
    with Image.open(tmp_path / "preview.webp") as picture:
        assert picture.n_frames == 10 and picture.width >= 270


def test_a_result_table_has_a_row_per_system(out):
    console = Console(width=140, record=True, quiet=False, file=open("/dev/null", "w"))
    console.print(demo.results_table(json.loads((out / "results.json").read_text())))
    text = console.export_text()
    assert "uniform-6+bdr" in text and "@0.9" in text


def test_the_demo_trains_the_packaged_recipe():
    assert demo.demo_config("tzn") == load_config("zoombench", [demo.STEPS])
    for name in ("uniform-6", "uniform-6+bdr"):
        config = demo.demo_config(name)
        assert config.model.name == "uniform-6" and config.bdr.enabled == name.endswith("+bdr")
        assert (config.data, config.training) == (demo.demo_config("tzn").data, demo.demo_config("tzn").training)
