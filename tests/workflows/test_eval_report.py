"""`tzoom eval` in words and as a page: from files, from a model, and requests that make no sense."""

import json

import pytest
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations, read_predictions
from temporalzoom.metrics.bootstrap import AVERAGED, bootstrap_interval, bootstrap_map
from temporalzoom.metrics.rates import RESAMPLES
from temporalzoom.segments import Segments
from temporalzoom.workflows.evaluate import evaluate_file
from temporalzoom.workflows.report import map_intervals, next_steps, read_thresholds, summarize
from temporalzoom.workflows.train import train


def segment(label, start, end, score=None):
    return {"label": label, "segment": [start, end]} | ({} if score is None else {"score": score})


@pytest.fixture
def files(tmp_path):
    annotated = {
        f"v{i}": {
            "subset": "test",
            "duration": 50,
            "subject": f"user{i // 2}",
            "annotations": [segment("serve", 0, 10), segment("[walk] a=b", 20, 30)],
        }
        for i in range(4)
    }
    found = {f"v{i}": [segment("serve", 0, 10, 0.9), segment("[walk] a=b", 40, 45, 0.3)] for i in range(4)}
    (tmp_path / "T.json").write_text(json.dumps({"database": annotated}))
    (tmp_path / "P.json").write_text(json.dumps({"results": found}))
    return tmp_path / "P.json", tmp_path / "T.json"


def arguments(files):
    return "eval", "--predictions", files[0], "--truth", files[1]


def test_words_below_the_tables_and_a_page(files, tmp_path, tzoom):
    page = tmp_path / "new folder" / "page.html"
    code, out, _ = tzoom(*arguments(files), "--report", page)
    assert code == 0
    assert "Finds 4 of 8 instances" in out and f"wrote {page}" in out.replace("\n", "")
    assert "Class by class: 4 of 4 `serve` and 0 of 4 `[walk] a=b`." in out
    assert "4 recordings of 2 subjects with 8 instances" in out
    html = page.read_text(encoding="utf-8")
    assert "Finds 4 of 8 instances" in html and "<code>[walk] a=b</code>" in html and "2 subjects" in html
    assert "What to do next" not in html  # nothing is known of the detector


def test_a_page_beside_json(files, tmp_path, tzoom):
    code, out, _ = tzoom(*arguments(files), "--report", tmp_path / "p.html", "--json")
    assert code == 0 and "mAP" in json.loads(out) and (tmp_path / "p.html").exists()


def test_thresholds_are_used(files, tmp_path, tzoom):
    assert "detections are wrong" not in tzoom(*arguments(files), "--threshold", "0.5")[1]
    own = ("--threshold", "0.5", "--threshold", "[walk] a=b=0.2", "--report", tmp_path / "p.html")
    assert "4 of its 8 detections are wrong" in tzoom(*arguments(files), *own)[1]
    assert "best F1 on these" not in (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "thresholds of `[walk] a=b` are those" in tzoom(*arguments(files), "--threshold", "serve=0.5")[1]


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (["--threshold", "high"], ["high", "0.4"]),
        (["--threshold", "srve=0.4"], ["srve", "serve"]),
        (["--threshold", "serve=nan"], ["serve=nan"]),
        (["--threshold", "0.4", "--json"], ["--threshold", "--json"]),
        (["--report", "page.pdf"], ["page.pdf", ".html"]),
    ],
)
def test_bad_requests_end_in_one_line(files, tzoom, given, parts):
    code, _, err = tzoom(*arguments(files), *given)
    assert code == 2 and len(err.strip().splitlines()) == 1 and all(part in err for part in parts)


def test_thresholds_from_text(files):
    evaluation = evaluate_file(*files)
    assert read_thresholds([], evaluation) is None
    assert read_thresholds(["serve=0.4"], evaluation) == {"serve": 0.4}
    assert read_thresholds(["serve=0.4", "0.2"], evaluation) == {"serve": 0.4, "[walk] a=b": 0.2}
    with pytest.raises(InputError, match="no class 'x'"):
        read_thresholds(["x=1"], evaluation)


def test_a_model_has_commands_that_come_next(tiny_config, tmp_path, tzoom):
    run = tmp_path / "my run"
    train(tiny_config("data.test_sequences=3"), run, console=Console(quiet=True))
    page = tmp_path / "p.html"
    code, out, _ = tzoom("eval", "--model", run, "--report", page, "inference.min_score=0")
    assert code == 0 and "These numbers come from 3 recordings with" in out
    assert next_steps(run)[1] == f"tzoom localize RECORDING --model '{run}' --out found.csv"
    assert "tzoom localize RECORDING --model &#x27;" in page.read_text(encoding="utf-8")


def test_who_was_recorded_comes_from_the_data(shared_data):
    from temporalzoom.config import load_config
    from temporalzoom.datasets.sources import load_data

    config = load_config("sbhar", [f"data.root={shared_data / 'sbhar'}"])
    test = load_data(config.data, train=False).test
    assert {sample.name[-6:]: sample.subject for sample in test.samples}["user10"] == "user10"


def test_intervals_in_batches_are_those_at_once(files):
    truth, found = read_annotations(files[1]).truth(), read_predictions(files[0])
    found["unknown"] = Segments([0], [10], ["serve"])
    known = map_intervals(truth, found, AVERAGED)
    everything = bootstrap_map({**truth, "unknown": Segments.empty()}, found, AVERAGED, RESAMPLES)
    assert known[0.5] == bootstrap_interval(everything.over([0.5])[1])
    assert known[None] == bootstrap_interval(everything.over(AVERAGED)[1])


def test_real_detections_in_words(shared_data):
    folder = shared_data / "thumos14" / "scnn"
    words = summarize(evaluate_file(folder / "scnn_iou0.5.json", folder / "thumos14_test_gt.json"))
    assert words[0].startswith("Finds ") and " of 3358 instances; " in words[0]
    assert any("`Diving` is confused with `CliffDiving`" in sentence for sentence in words)
