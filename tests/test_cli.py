"""The command line as a user meets it: what it prints, what it writes, how it fails."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from temporalzoom.formats import read_predictions
from temporalzoom.inference.localizer import Localizer

TINY = ("training.steps=3", "model.width=16", "model.heads=2", "model.name=uniform-1", "training.batch_size=2")


@pytest.fixture
def bench(tmp_path, tzoom) -> Path:
    """A small benchmark written as files."""
    folder = tmp_path / "bench"
    code, out, _ = tzoom(
        "data", "make-zoombench", "--out", folder, "sequences=4", "test_sequences=2", "length=96", "dimension=8"
    )
    assert code == 0 and str(folder / "config.yaml") in out
    return folder


@pytest.fixture
def run(bench, tmp_path, tzoom) -> Path:
    """A run trained for three steps on that benchmark."""
    folder = tmp_path / "run"
    code, out, _ = tzoom("train", bench / "config.yaml", *TINY, "--out", folder)
    assert code == 0 and "tzoom eval --model" in out
    return folder


def edit_annotations(bench: Path, change) -> None:
    path = bench / "annotations.json"
    document = json.loads(path.read_text())
    change(document["database"])
    path.write_text(json.dumps(document))


def assert_one_line_error(result: tuple[int, str, str], *words: object) -> None:
    code, _, err = result
    lines = [line for line in err.strip().splitlines() if line.strip()]
    assert code == 2, err
    assert "Traceback" not in err
    message = next(line for line in lines if line.startswith("error:"))
    assert message == lines[-1]
    for word in words:
        assert str(word) in message, (word, message)


@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["train"],
        ["eval"],
        ["localize"],
        ["clips"],
        ["budget"],
        ["sweep"],
        ["cost"],
        ["data", "check"],
        ["data", "make-zoombench"],
        ["bench"],
    ],
    ids=" ".join,
)
def test_every_command_has_help_with_an_example(tzoom, command):
    code, out, _ = tzoom(*command, "--help")
    assert code == 0
    assert "Example" in out and f"tzoom {' '.join(command)}" in out


def test_a_benchmark_says_what_is_wrong_before_it_trains(tzoom, tmp_path):
    nowhere = ("--root", tmp_path / "nowhere")
    assert_one_line_error(tzoom("bench", "sbhar", *nowhere), "data.root", "nowhere", "RawData/labels.txt")
    assert_one_line_error(tzoom("bench", "rats", *nowhere), "coarse.json")
    assert_one_line_error(tzoom("bench", "tug", "--root", tmp_path, "--seeds", "0,x"), "--seeds", "0,x")


def test_from_files_to_scores_to_segments(run, bench, tmp_path, tzoom):
    code, out, _ = tzoom("eval", "--model", run, "--tiou", "0.1,0.5", "--json", "--out", tmp_path / "found.json")
    scores = json.loads(out)
    assert code == 0 and set(scores["mAP"]) == {"0.1", "0.5"}
    assert scores["average"] == pytest.approx(np.mean(list(scores["mAP"].values())))

    # The predictions it wrote, scored as anybody's file, give the same numbers.
    arguments = ("--predictions", tmp_path / "found.json", "--truth", bench / "annotations.json", "--subset", "test")
    code, out, _ = tzoom("eval", *arguments, "--tiou", "0.1,0.5", "--json")
    assert code == 0 and json.loads(out)["mAP"] == pytest.approx(scores["mAP"], abs=1e-6)

    code, out, _ = tzoom("eval", "--model", run)
    assert code == 0 and "mAP" in out and "Boundary error" in out


def test_settings_of_inference_can_be_tried_on_a_trained_model(run, bench, tmp_path, tzoom):
    def found(*overrides: str) -> list:
        path = tmp_path / "found.json"
        code, _, _ = tzoom("eval", "inference.min_score=0", *overrides, "--model", run, "--out", path)
        assert code == 0
        return [s["score"] for v in json.loads(path.read_text())["results"].values() for s in v]

    plain = found()
    assert len(found("inference.max_segments=2")) == 4 < len(plain)
    assert max(plain) < max(found("inference.certainty=1")) < max(found("inference.certainty=0"))
    assert found() == plain  # nothing is stored
    assert_one_line_error(tzoom("eval", "--model", run, "model.width=8"), "model.width=8", "inference")
    assert_one_line_error(tzoom("eval", "--model", run, "inference.sertainty=1"), "inference.certainty")
    both = ("--predictions", tmp_path / "found.json", "--truth", bench / "annotations.json")
    assert_one_line_error(tzoom("eval", *both, "inference.certainty=1"), "inference.certainty=1", "--model")


@pytest.mark.parametrize("suffix", [".json", ".csv", ".vtt"])
def test_localize_writes_each_format(run, bench, tmp_path, tzoom, suffix):
    features, target = bench / "features" / "test_0000.npy", tmp_path / f"found{suffix}"
    code, out, _ = tzoom("localize", features, "--model", run, "--threshold", 0, "--top", 3, "--out", target)
    assert code == 0 and str(target) in out.replace("\n", "")
    text = target.read_text()
    if suffix == ".json":
        assert len(json.loads(text)["results"]["test_0000"]) == 3
    elif suffix == ".csv":
        assert [row["video"] for row in csv.DictReader(text.splitlines())] == ["test_0000"] * 3
    else:
        assert text.startswith("WEBVTT") and text.count("-->") == 3


def test_localize_prints_a_table_and_takes_folders(run, bench, tzoom):
    code, out, _ = tzoom("localize", bench / "features", "--model", run, "--threshold", 0, "--top", 2)
    assert code == 0 and "test_0001: 2 segments" in out and "train_0003: 2 segments" in out


def test_localize_with_other_settings_of_inference(run, bench, tzoom):
    recording = bench / "features" / "test_0000.npy"
    common = ("localize", recording, "--model", run, "--threshold", 0)
    assert "1 segments" in tzoom(*common, "inference.max_segments=1")[1]
    code, out, _ = tzoom(*common, "--top", 3, "inference.precision=bfloat16", "inference.max_segments=2")
    assert code == 0 and "2 segments" in out
    assert_one_line_error(tzoom(*common, "inference.precision=half"), "inference.precision", "bfloat16", "half")
    assert_one_line_error(tzoom(*common, "model.width=3"), "model.width=3", "only settings of inference")
    assert_one_line_error(tzoom("localize", "inference.sigma=1", "--model", run), "inference.sigma=1", "no video")
    assert_one_line_error(tzoom("localize", "a=b.npy", "--model", run), "a=b.npy", "no such file")


def test_localize_says_why_there_is_nothing(run, bench, tzoom):
    code, out, err = tzoom("localize", bench / "features" / "test_0000.npy", "--model", run, "--threshold", 0.999)
    assert code == 0 and "0 segments" in out and "no segment reaches the score 0.999" in err


def test_localize_selects_as_python_does(run, bench, tmp_path, tzoom):
    recording = bench / "features" / "test_0000.npy"
    common = ("localize", recording, "--model", run, "--threshold", 0, "--out", tmp_path / "found.json")
    code, _, err = tzoom(*common, "--no-overlap", "--merge-gap", 0.2, "--min-length", 0.5)
    assert code == 0, err
    found = read_predictions(tmp_path / "found.json")["test_0000"]
    localizer = Localizer.load(run)
    python = localizer(recording, threshold=0, merge_gap=0.2, min_length=0.5, no_overlap=True)
    assert found == python and len(found) and (found.durations >= 0.5).all()
    settings = ("inference.no_overlap=true", "inference.merge_gap=0.2", "inference.min_length=0.5")
    assert tzoom(*common, *settings)[0] == 0 and read_predictions(tmp_path / "found.json")["test_0000"] == python
    assert tzoom(*common, *settings, "--overlap", "--merge-gap", 0, "--min-length", 0)[0] == 0
    assert read_predictions(tmp_path / "found.json")["test_0000"] == localizer(recording, threshold=0)
    code, out, err = tzoom(*common[:-2], "--min-length", 1000)
    assert code == 0 and "0 segments" in out and "as long as asked for; the longest lasts" in err


def test_settings_of_classes_that_do_not_exist(run, bench, tmp_path, tzoom):
    recording, name = bench / "features" / "test_0000.npy", Localizer.load(run).classes[0]
    setting = f"inference.threshold={{default: 0.9, {name}: 0}}"
    shown = tzoom("localize", recording, "--model", run, "--set", setting, "--out", tmp_path / "found.json")
    assert shown[0] == 0 and set(read_predictions(tmp_path / "found.json")["test_0000"].labels) == {name}
    wrong = f"inference.threshold={{{name}z: 0}}"
    words = ("inference.threshold", f"no class '{name}z'", f"did you mean '{name}'")
    assert_one_line_error(tzoom("localize", recording, "--model", run, "--set", wrong), *words)
    again = ("train", bench / "config.yaml", *TINY, "--out", tmp_path / "other", "--set", wrong)
    assert_one_line_error(tzoom(*again), *words)
    assert not (tmp_path / "other").exists()
    assert_one_line_error(tzoom("eval", "--model", run, "inference.no_overlap=true"), "tzoom localize", "min_score")


def test_version(tzoom):
    code, out, _ = tzoom("--version")
    assert code == 0 and out.startswith("temporalzoom ")


def test_localize_is_deterministic(run, bench, tmp_path, tzoom):
    for name in ("a.json", "b.json"):
        tzoom(
            "localize", bench / "features" / "test_0000.npy", "--model", run, "--threshold", 0, "--out", tmp_path / name
        )
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_data_check_describes_sound_data(bench, tzoom):
    code, out, _ = tzoom("data", "check", bench / "config.yaml")
    assert code == 0 and "no problem found" in out and "train" in out and "background" in out


def test_data_check_describes_the_embedded_benchmark(tmp_path, tzoom):
    config = tmp_path / "c.yaml"
    config.write_text("data: {source: zoombench, sequences: 2, test_sequences: 1, length: 64}\n")
    code, out, _ = tzoom("data", "check", config)
    assert code == 0 and "no problem found" in out


def test_all_problems_are_listed_at_once_before_training(bench, tmp_path, tzoom):
    features = bench / "features"
    (features / "train_0000.npy").unlink()
    broken = np.load(features / "train_0001.npy")
    broken[5, 2] = np.nan
    np.save(features / "train_0001.npy", broken)
    np.save(features / "train_0002.npy", np.load(features / "train_0002.npy")[:30])
    np.save(features / "train_0003.npy", np.zeros((0, 8), np.float32))

    def spoil(database):
        first = database["test_0000"]["annotations"]
        first.append({"label": "juggling", "segment": [1.0, 2.0]})
        first.append({"label": first[0]["label"], "segment": [3.0, 3.0]})
        database["test_0001"]["annotations"].append({"label": first[0]["label"], "segment": [5.0, 500.0]})

    edit_annotations(bench, spoil)
    result = tzoom("train", bench / "config.yaml", *TINY, "--out", tmp_path / "run")
    assert_one_line_error(result, "data check")
    for kind in (
        "missing features",
        "NaN or Inf",
        "length",
        "empty video",
        "unknown label",
        "end <= start",
        "outside the video",
    ):
        assert kind in result[2], kind
    assert not (tmp_path / "run").exists()

    code, out, _ = tzoom("data", "check", bench / "config.yaml")
    assert code == 2 and "missing features" in out and "unknown label" in out


def test_a_wrong_stride_is_noticed(bench, tmp_path, tzoom):
    result = tzoom("train", bench / "config.yaml", "data.stride=8", "--out", tmp_path / "run")
    assert_one_line_error(result, "length", "stride 4")


def test_allow_missing_skips_and_says_how_many(bench, tmp_path, tzoom):
    (bench / "features" / "train_0002.npy").unlink()
    result = tzoom("train", bench / "config.yaml", *TINY, "--out", tmp_path / "run")
    assert_one_line_error(result, "train_0002")
    code, _, err = tzoom("train", bench / "config.yaml", *TINY, "--out", tmp_path / "run", "--allow-missing")
    assert code == 0 and "left out 1 recording" in err and "train_0002" in err


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("training.step=5", ["training.step", "training.steps"]),
        ("training.steps=many", ["training.steps", "many"]),
        ("inference.refine=newtn", ["inference.refine", "newtn", "newton"]),
        ("nonsense", ["nonsense", "key=value"]),
        ("model.name=resnet", ["resnet", "uniform"]),
        ("model.heads=3", ["model.heads", "model.width"]),
        ("data.features=nowhere", ["data.features", "nowhere"]),
        ("data.annotations=nowhere.json", ["nowhere.json"]),
        ("data.train_subset=drill", ["annotations.json", "drill", "train"]),
        ("data.stride=null", ["data.stride"]),
    ],
)
def test_bad_settings_end_in_one_line(bench, tmp_path, tzoom, override, words):
    result = tzoom("train", bench / "config.yaml", *TINY[:2], override, "--out", tmp_path / "run")
    assert_one_line_error(result, *words)


def test_bad_files_end_in_one_line(run, bench, tmp_path, tzoom):
    assert_one_line_error(tzoom("train", tmp_path / "none.yaml"), "none.yaml")
    assert_one_line_error(tzoom("eval", "--model", tmp_path / "none"), "none")
    assert_one_line_error(tzoom("eval", "--model", tmp_path), "checkpoint")
    assert_one_line_error(tzoom("localize", tmp_path / "none.npy", "--model", run), "none.npy")
    np.save(tmp_path / "narrow.npy", np.zeros((20, 5), np.float32))
    assert_one_line_error(tzoom("localize", tmp_path / "narrow.npy", "--model", run), "narrow.npy", "5", "8")
    np.save(tmp_path / "nan.npy", np.full((20, 8), np.nan, np.float32))
    assert_one_line_error(tzoom("localize", tmp_path / "nan.npy", "--model", run), "nan.npy", "NaN")
    (tmp_path / "text.npy").write_text("not an array")
    assert_one_line_error(tzoom("localize", tmp_path / "text.npy", "--model", run), "text.npy")
    features = bench / "features" / "test_0000.npy"
    assert_one_line_error(
        tzoom("localize", features, "--model", run, "--out", tmp_path / "found.doc"), "found.doc", ".vtt"
    )
    assert_one_line_error(tzoom("localize", features, "--model", run, "--fps", "-1"), "fps")


def test_bad_evaluation_requests_end_in_one_line(bench, tmp_path, tzoom):
    truth = bench / "annotations.json"
    predictions = tmp_path / "p.json"
    predictions.write_text('{"results": {}}')
    assert_one_line_error(tzoom("eval"), "--model", "--predictions")
    assert_one_line_error(tzoom("eval", "--predictions", predictions), "--truth")
    both = ("--predictions", predictions, "--truth", truth)
    assert_one_line_error(tzoom("eval", *both, "--protocol", "coco"), "coco", "anet", "th14")
    assert_one_line_error(tzoom("eval", *both, "--tiou", "half"), "half")
    assert_one_line_error(tzoom("eval", *both, "--tiou", "0.5,1.5"), "1.5")
    assert_one_line_error(tzoom("eval", *both, "--subset", "drill"), "drill")
    predictions.write_text('{"results": {"test_0000": [{"label": "a", "segment": [1]}]}}')
    assert_one_line_error(tzoom("eval", *both), "p.json", "test_0000")
    predictions.write_text("{")
    assert_one_line_error(tzoom("eval", *both), "p.json")


def test_eval_says_how_much_is_found_whatever_its_label(tmp_path, tzoom):
    truth = {"annotations": [{"label": "a", "segment": [1, 2]}, {"label": "b", "segment": [5, 9]}], "duration": 10}
    found = [{"label": "x", "segment": [1, 2], "score": 0.9}, {"label": "x", "segment": [5, 8], "score": 0.5}]
    (tmp_path / "T.json").write_text(json.dumps({"database": {"v": truth | {"subset": "test"}}}))
    (tmp_path / "P.json").write_text(json.dumps({"results": {"v": found}}))
    files = ("eval", "--predictions", tmp_path / "P.json", "--truth", tmp_path / "T.json", "--proposals")
    _, printed, _ = tzoom(*files, "--json")
    # One of the two with one proposal; with both, the second counts up to tIoU 0.75, six of ten thresholds.
    recall = json.loads(printed)["proposals"]
    assert recall["AR@1"] == pytest.approx(0.5) and recall["AR@100"] == pytest.approx((1 + 0.6) / 2)
    assert "AUC" in tzoom(*files)[1]


def test_eval_of_real_detections(shared_data, tzoom):
    folder = shared_data / "thumos14" / "scnn"
    expected = json.loads((folder / "expected.json").read_text())["scnn_iou0.5"]
    files = ("--predictions", folder / "scnn_iou0.5.json", "--truth", folder / "thumos14_test_gt.json")
    _, out, _ = tzoom("eval", *files, "--protocol", "th14", "--tiou", "0.5", "--json")
    assert json.loads(out)["mAP"]["0.5"] == pytest.approx(expected["published_or_stored_mAP"], abs=1e-4)
    _, out, _ = tzoom("eval", *files, "--protocol", "anet", "--tiou", "0.5", "--json")
    assert json.loads(out)["mAP"]["0.5"] == pytest.approx(expected["official_anet_code_mAP"], abs=0.007)


def test_ambiguous_spans_count_for_a_model_as_for_a_file(run, bench, tmp_path, tzoom):
    def mark(database: dict) -> None:
        for entry in database.values():  # the second half of every recording
            entry["ambiguous"] = [[entry["duration"] / 2, entry["duration"]]]

    th14 = ("--protocol", "th14", "--tiou", "0.1", "--json")
    plain = json.loads(tzoom("eval", "--model", run, *th14)[1])["mAP"]
    edit_annotations(bench, mark)
    found = tmp_path / "found.json"
    of_model = json.loads(tzoom("eval", "--model", run, *th14, "--out", found)[1])["mAP"]
    files = ("--predictions", found, "--truth", bench / "annotations.json", "--subset", "test")
    of_file = json.loads(tzoom("eval", *files, *th14)[1])["mAP"]
    assert of_model == pytest.approx(of_file) and of_model != plain


def test_the_table_by_length_is_of_the_same_protocol(tmp_path, tzoom):
    """A detection in an ambiguous span, more sure than the true one: a false positive to ActivityNet only."""
    truth = {"annotations": [{"segment": [1, 3], "label": "jump"}], "ambiguous": [[10, 20]], "subset": "test"}
    (tmp_path / "truth.json").write_text(json.dumps({"database": {"v": {"duration": 30, **truth}}}))
    found = [{"segment": [11, 13], "label": "jump", "score": 0.9}, {"segment": [1, 3], "label": "jump", "score": 0.8}]
    (tmp_path / "found.json").write_text(json.dumps({"results": {"v": found}}))
    files = ("--predictions", tmp_path / "found.json", "--truth", tmp_path / "truth.json", "--tiou", "0.5")
    rows = {}
    for protocol in ("anet", "th14"):
        _, out, _ = tzoom("eval", *files, "--protocol", protocol)
        [rows[protocol]] = [line for line in out.splitlines() if "1 to 3 s" in line]
    assert "50.00" in rows["anet"] and "100.00" in rows["th14"]


def test_a_run_is_not_overwritten(run, bench, tzoom):
    result = tzoom("train", bench / "config.yaml", *TINY, "--out", run)
    assert_one_line_error(result, run, "--resume")
