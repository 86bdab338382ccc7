"""The field's video benchmarks: each recipe on tiny files in the forms of the projects that publish the real ones."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rich.console import Console

from temporalzoom.config import Config, DataConfig, FolderData, load_config, recipe_names
from temporalzoom.datasets.report import report_data
from temporalzoom.datasets.sources import load_data, open_source
from temporalzoom.datasets.statistics import statistics
from temporalzoom.datasets.video_sets import clipped
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import write_features
from temporalzoom.timegrid import TimeGrid
from temporalzoom.workflows.evaluate import evaluate

DURATION, WIDTH = 64.0, 3
RUN, JUMP = ("run", [10.0, 20.0]), ("jump", [30.5, 40.0])


def instances(ids: bool, *pairs: tuple[str, list[float]]) -> list[dict[str, Any]]:
    """`{"label", "segment"}`, with the ids of ActionFormer's files or without."""
    order = {"run": 1, "jump": 0}
    return [{"label": a, "segment": s} | ({"label_id": order[a]} if ids else {}) for a, s in pairs]


def action_former(train: str, test: str, fps: float | None, **keys: Any) -> dict[str, Any]:
    """The form of ActionFormer's files: subsets, duration, fps, label ids."""
    known = {"duration": DURATION} | ({} if fps is None else {"fps": fps}) | keys
    return {
        "version": "v1",
        "database": {
            "one": {"subset": train, **known, "annotations": instances(True, RUN, JUMP)},
            "two": {"subset": test, **known, "annotations": instances(True, RUN)},
        },
    }


def open_tad(train: str, test: str, fps: float | None, hidden: str | None = None) -> dict[str, Any]:
    """The form of OpenTAD's files: subsets, duration, number of frames, labels; hidden subsets have no annotations."""
    known = {"duration": DURATION} | ({} if fps is None else {"frame": round(DURATION * fps)})
    database = {
        "one": {"subset": train, **known, "annotations": instances(False, RUN, JUMP)},
        "two": {"subset": test, **known, "annotations": instances(False, RUN)},
    }
    return {"version": "v2", "database": database | ({"three": {"subset": hidden, **known}} if hidden else {})}


def bsn(folder: Path) -> dict[str, Any]:
    """The form of BSN and BMN, with the table of subsets beside it."""
    rows = ["video,numFrame,seconds,fps,rfps,subset,featureFrame"]
    rows += [f"v_{name},1600,64.0,25.0,25.0,{s},1600" for name, s in (("one", "training"), ("two", "validation"))]
    (folder / "video_info_new.csv").write_text("\n".join(rows) + "\n")
    known = {"duration_second": DURATION, "duration_frame": 1600, "feature_frame": 1600}
    return {
        "v_one": {**known, "annotations": instances(False, RUN, JUMP)},
        "v_two": {**known, "annotations": instances(False, RUN)},
    }


def full_epic() -> dict[str, Any]:
    document = open_tad("train", "val", None, "test")
    for entry in document["database"].values():
        for record in entry.get("annotations", ()):
            label = record.pop("label")
            record |= {
                "verb_label": label,
                "noun_label": f"the {label}",
                "verb_label_name": "x",
                "noun_label_name": "y",
            }
    return document


# recipe, form, the file's content, the grid that must come out, prefix and suffix of feature files
FORMS: list[tuple[str, str, Callable[[Path], dict[str, Any]], TimeGrid, str, str]] = [
    ("thumos14", "actionformer", lambda _: action_former("Validation", "Test", 30.0), TimeGrid(4, 16, 30),
     "", "npy"),
    ("thumos14", "opentad", lambda _: open_tad("training", "validation", 25), TimeGrid(4, 16, 25), "", "npy"),
    ("activitynet", "actionformer", lambda _: action_former("training", "validation", None), TimeGrid(16, 16, 15),
     "v_", "npy"),
    ("activitynet", "official", lambda _: open_tad("training", "validation", 30, "testing"), TimeGrid(16, 16, 15),
     "v_", "npy"),
    ("activitynet", "bsn", bsn, TimeGrid(16, 16, 15), "v_", "npy"),
    ("activitynet-agnostic", "bsn", bsn, TimeGrid(16, 16, 15), "v_", "npy"),
    ("fineaction", "actionformer", lambda _: action_former("training", "validation", 25.0),
     TimeGrid(16, 16, 25), "", "npy"),
    ("fineaction", "opentad", lambda _: open_tad("training", "validation", 25, "testing"),
     TimeGrid(16, 16, 25), "", "npy"),
    ("ego4d-mq", "actionformer", lambda _: action_former("training", "validation", 29.99), TimeGrid(16, 16, 30),
     "", "npy"),
    ("ego4d-mq", "opentad", lambda _: open_tad("train", "val", 30, "test"), TimeGrid(16, 16, 30), "", "npy"),
    ("epic-kitchens-verb", "actionformer", lambda _: action_former("training", "validation", 59.94),
     TimeGrid(16, 32, 30), "", "npz"),
    ("epic-kitchens-noun", "opentad", lambda _: open_tad("train", "val", None, "test"), TimeGrid(16, 32, 30),
     "", "npy"),
    ("epic-kitchens-verb", "full", lambda _: full_epic(), TimeGrid(16, 32, 30), "", "npy"),
]  # fmt: skip


def recipe(name: str, folder: Path, *overrides: str) -> Config:
    """The recipe, pointed at a folder of the test."""
    paths = (f"data.annotations={folder / 'truth.json'}", f"data.features={folder / 'features'}")
    return load_config(name, [*paths, *overrides])


def write(folder: Path, document: dict[str, Any], grid: TimeGrid | None, prefix: str = "", suffix: str = "npy") -> None:
    (folder / "truth.json").write_text(json.dumps(document))
    if grid is None:
        return
    (folder / "features").mkdir(exist_ok=True)
    length = int((DURATION * grid.fps - grid.window) / grid.stride + 1)
    for index, name in enumerate(("one", "two", "three")):
        array = np.random.default_rng(index).normal(size=(length, WIDTH)).astype(np.float32)
        if suffix == "npy":
            write_features(folder / "features" / f"{prefix}{name}.npy", array)
        else:
            np.savez(folder / "features" / f"{prefix}{name}.npz", feats=array)


@pytest.mark.parametrize(
    ("name", "form", "content", "grid", "prefix", "suffix"), FORMS, ids=[f"{name}-{form}" for name, form, *_ in FORMS]
)
def test_every_recipe_takes_the_files_of_the_field(
    tmp_path: Path, name: str, form: str, content: Callable, grid: TimeGrid, prefix: str, suffix: str
):
    write(tmp_path, content(tmp_path), grid, prefix, suffix)
    config = recipe(name, tmp_path)
    annotations, _ = open_source(config.data)
    assert set(annotations.classes) == {"run", "jump"} and annotations.declared
    if form == "actionformer":
        assert annotations.classes == ("jump", "run")  # by label_id
    loaded = load_data(config.data)
    assert loaded.train is not None and loaded.test is not None
    [train], [test] = loaded.train.samples, loaded.test.samples
    assert (train.name, test.name) == ("one", "two") and train.duration == DURATION
    assert loaded.train.labelled_truth()["one"] == Segments([10, 30.5], [20, 40], ["run", "jump"])
    if config.data.resize is None:
        assert train.grid == test.grid == grid
        return
    length = int((DURATION * grid.fps - grid.window) / grid.stride + 1)
    stride = ((length - 1) * grid.stride + grid.window) / 128
    assert len(train) == 128 and train.grid == TimeGrid(stride, stride, grid.fps)
    assert train.grid.duration(128) == pytest.approx(DURATION, abs=16 / 15)


THRESHOLDS = {
    "thumos14": [0.3, 0.4, 0.5, 0.6, 0.7],
    "activitynet": [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95],
    "fineaction": [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95],
    "ego4d_mq": [0.1, 0.2, 0.3, 0.4, 0.5],
    "epic_kitchens": [0.1, 0.2, 0.3, 0.4, 0.5],
}


@pytest.mark.parametrize("source", THRESHOLDS)
def test_every_benchmark_has_recipes_with_its_thresholds(source: str):
    found = [load_config(name) for name in recipe_names()]
    mine = [config for config in found if config.data.source == source]
    assert mine and all(list(config.evaluation.thresholds) == THRESHOLDS[source] for config in mine)
    assert all(config.training.length <= config.inference.max_length for config in mine)


# Subsets


def test_validation_is_the_training_subset_of_thumos14_in_one_form_and_the_test_subset_in_the_other(tmp_path: Path):
    """Taking the names at face value would train on the test videos."""
    write(tmp_path, open_tad("training", "validation", 30), TimeGrid(4, 16, 30))
    annotations, _ = open_source(recipe("thumos14", tmp_path).data)
    assert {name: r.subset for name, r in annotations.recordings.items()} == {"one": "Validation", "two": "Test"}


def test_names_of_the_file_may_be_asked_for(tmp_path: Path):
    write(tmp_path, open_tad("training", "validation", 30), TimeGrid(4, 16, 30))
    data = recipe("thumos14", tmp_path, "data.train_subset=validation", "data.test_subset=training").data
    annotations, _ = open_source(data)
    assert {name: r.subset for name, r in annotations.recordings.items()} == {"one": "training", "two": "validation"}


def complaint(data: DataConfig) -> str:
    with pytest.raises(InputError) as caught:
        load_data(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_unknown_subsets_are_answered_with_those_present(tmp_path: Path):
    write(tmp_path, open_tad("a", "b", 30), None)
    said = complaint(recipe("ego4d-mq", tmp_path).data)
    assert said.endswith("subsets 'train' and 'val' or 'training' and 'validation' or 'train' and 'val' are expected; "
                         "present: a, b")  # fmt: skip


def test_a_hidden_subset_cannot_be_scored(tmp_path: Path):
    write(tmp_path, open_tad("train", "val", 30, "test"), None)
    said = complaint(recipe("ego4d-mq", tmp_path, "data.test_subset=test").data)
    assert "1 videos of the subset 'test' have no key 'annotations'" in said and "three" in said


def test_a_class_of_the_test_subset_alone_belongs_to_the_benchmark(tmp_path: Path):
    document = open_tad("train", "val", None)
    document["database"]["two"]["annotations"][0]["label"] = "swim"
    write(tmp_path, document, TimeGrid(16, 32, 30))
    loaded = load_data(recipe("epic-kitchens-noun", tmp_path).data)
    assert loaded.train is not None and loaded.train.classes == ("jump", "run", "swim")


# EPIC-Kitchens, ActivityNet


def test_verbs_and_nouns_are_told_apart(tmp_path: Path):
    write(tmp_path, full_epic(), TimeGrid(16, 32, 30))
    nouns, _ = open_source(recipe("epic-kitchens-noun", tmp_path).data)
    assert nouns.classes == ("the jump", "the run") and "2 of 300 classes" in nouns.notes[0]
    verbs, _ = open_source(recipe("epic-kitchens-verb", tmp_path).data)
    assert verbs.classes == ("jump", "run") and "2 of 97 classes" in verbs.notes[0]
    said = complaint(recipe("epic-kitchens-verb", tmp_path, "data.task=null").data)
    assert said == "data.task: which one, verb or noun? EPIC-Kitchens has both"
    write(tmp_path, open_tad("train", "val", None) | {"version": "epic-kitchens-100-noun"}, None)
    assert "holds nouns, and data.task is verb" in complaint(recipe("epic-kitchens-verb", tmp_path).data)


def test_the_bsn_form_needs_its_table(tmp_path: Path):
    write(tmp_path, bsn(tmp_path), None)
    table = tmp_path / "video_info_new.csv"
    table.write_text(table.read_text().replace("v_two", "v_other"))
    assert "no subset for 1 videos" in complaint(recipe("activitynet", tmp_path).data)
    table.write_text("video,seconds\nv_one,3\n")
    assert complaint(recipe("activitynet", tmp_path).data).endswith("video_info_new.csv: no column 'subset'")
    table.unlink()
    assert "there is no video_info_new.csv beside it" in complaint(recipe("activitynet", tmp_path).data)


# Clipping


def test_clipping_cuts_drops_and_says_so(tmp_path: Path):
    document = action_former("Validation", "Test", 30.0)
    bad = [
        ("run", [60.0, 70.0]),
        ("run", [65.0, 70.0]),
        ("jump", [-2.0, 3.0]),
        ("jump", [9.0, 9.0]),
        ("run", [1, 64.05]),
    ]
    document["database"]["one"]["annotations"] += instances(True, *bad)
    write(tmp_path, document, TimeGrid(4, 16, 30))
    said = complaint(recipe("thumos14", tmp_path, "data.clip=false").data)
    assert "3 x outside the video, 1 x end <= start" in said
    console = Console(file=io.StringIO(), width=300)
    loaded = load_data(recipe("thumos14", tmp_path).data, console=console)
    assert loaded.train is not None
    kept = [(start, end) for start, end, _, _ in loaded.train.samples[0].segments]
    assert kept == [(10.0, 20.0), (30.5, 40.0), (60.0, 64.0), (0.0, 3.0), (1.0, 64.0)]
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "2 instances cut to their recording, 2 dropped because nothing of them is left, in one" in printed


# Class-agnostic models


def test_a_class_agnostic_split_keeps_the_true_labels(tmp_path: Path):
    write(tmp_path, bsn(tmp_path), TimeGrid(16, 16, 15), "v_")
    loaded = load_data(recipe("activitynet-agnostic", tmp_path).data)
    assert loaded.train is not None and loaded.train.classes == ("action",)
    assert loaded.train.truth()["one"] == Segments([10, 30.5], [20, 40], ["action", "action"])
    assert loaded.train.labelled_truth()["one"].labels.tolist() == ["run", "jump"]


@pytest.fixture
def agnostic_run(tmp_path: Path, tzoom: Callable) -> tuple[Path, Path]:
    """A run of the recipe, two steps long, and its score file."""
    write(tmp_path, bsn(tmp_path), TimeGrid(16, 16, 15), "v_")
    settings = {
        "base": "activitynet-agnostic",
        "data": {"annotations": "truth.json", "features": "features"},
        "model": {"name": "uniform-1", "width": 8, "heads": 2},
        "training": {"steps": 2, "batch_size": 2},
        "inference": {"video_scores": "scores.json"},
        "evaluation": {"thresholds": [0.25, 0.75]},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(settings))
    code, _, err = tzoom("train", tmp_path / "mine.yaml", "--out", tmp_path / "run")
    assert code == 0, err
    assert "videos, of those released: 1 of 10024 training" in err
    return tmp_path / "run", tmp_path / "scores.json"


def test_video_scores_label_a_class_agnostic_model(agnostic_run: tuple[Path, Path], tzoom: Callable, tmp_path: Path):
    run, scores = agnostic_run
    scores.write_text(json.dumps({"results": {"two": [0.9, 0.0, 0.1]}, "class": ["run", "swim", "jump"]}))
    code, out, err = tzoom("eval", "--model", run, "--json", "--out", tmp_path / "found.json")
    assert code == 0, err
    assert list(json.loads(out)["mAP"]) == ["0.25", "0.75"]  # of the configuration
    found = json.loads((tmp_path / "found.json").read_text())["results"]["two"]
    by_label = {label: [r for r in found if r["label"] == label] for label in ("run", "jump")}
    assert len(found) == 2 * len(by_label["run"]) == 2 * len(by_label["jump"]) > 0
    ratio = by_label["run"][0]["score"] / by_label["jump"][0]["score"]
    assert ratio == pytest.approx(3, rel=1e-4)  # sqrt(0.9 / 0.1)
    assert set(evaluate(run).truth["two"].labels) == {"run"}
    code, out, err = tzoom("eval", "--model", run, "--json", "--tiou", "0.5")
    assert code == 0 and list(json.loads(out)["mAP"]) == ["0.5"]


def test_without_scores_for_a_video_nothing_is_scored(agnostic_run: tuple[Path, Path], tzoom: Callable):
    run, scores = agnostic_run
    scores.write_text(json.dumps({"one": {"run": 1.0}}))
    code, out, err = tzoom("eval", "--model", run)
    assert (code, out) == (2, "") and "no scores for 1 of 1 recordings: two" in " ".join(err.split())


def test_localize_labels_what_it_finds_too(agnostic_run: tuple[Path, Path], tzoom: Callable, tmp_path: Path):
    run, scores = agnostic_run
    file, clock = tmp_path / "features" / "v_two.npy", ("--stride", 16, "--threshold", 0)
    command = ("localize", file, "--model", run, *clock, "--out", tmp_path / "found.json")
    code, out, err = tzoom(*command)
    assert (code, out) == (2, "") and str(scores) in err and len(err.splitlines()) == 1
    code, out, err = tzoom(*command, "inference.video_scores=/nowhere.json")
    assert (code, out) == (2, "") and "/nowhere.json" in err and len(err.splitlines()) == 1
    scores.write_text(json.dumps({"one": {"run": 1.0}}))
    code, out, err = tzoom(*command)
    assert (code, out) == (2, "") and f"{scores} has no scores for 1 of 1 recordings: two" in err
    scores.write_text(json.dumps({"two": {"run": 1.0}}))  # the file's prefix v_ does not belong to the name
    code, out, err = tzoom(*command)
    assert code == 0, err
    found = json.loads((tmp_path / "found.json").read_text())["results"]["v_two"]
    assert found and {segment["label"] for segment in found} == {"run"}
    code, _, err = tzoom(*command, "inference.video_scores=null")
    assert code == 0, err


def test_without_a_classifier_labels_are_not_scored(agnostic_run: tuple[Path, Path], tzoom: Callable):
    folder = agnostic_run[0].parent
    tzoom("train", folder / "mine.yaml", "inference.video_scores=null", "--out", folder / "other")
    console = Console(file=io.StringIO(), width=300)
    score = evaluate(folder / "other", console=console)
    assert set(score.truth["two"].labels) == set(score.predictions["two"].labels) == {"action"}
    assert "scored without labels" in console.file.getvalue()  # type: ignore[attr-defined]


def test_video_scores_are_for_class_agnostic_models_only(agnostic_run: tuple[Path, Path], tzoom: Callable):
    run, scores = agnostic_run
    scores.write_text(json.dumps({"two": {"run": 1.0}}))
    folder = run.parent
    other = ("train", folder / "mine.yaml", "data.class_agnostic=false", "--out", folder / "other")
    code, _, err = tzoom(*other, f"inference.video_scores={scores}")
    assert code == 2 and "inference.video_scores: has no effect here" in err and "data.class_agnostic" in err
    assert tzoom(*other)[0] == 0
    code, _, err = tzoom("eval", "--model", folder / "other", f"inference.video_scores={scores}")
    assert code == 2 and "data.class_agnostic" in err


# The report


def shown(data: DataConfig) -> tuple[str, list]:
    parts, problems = report_data(data)
    console = Console(file=io.StringIO(), width=200)
    for part in parts:
        console.print(part)
    return console.file.getvalue(), problems  # type: ignore[attr-defined]


def test_the_report_knows_the_disputed_videos_of_thumos14(tmp_path: Path):
    document = action_former("Validation", "Test", 30.0)
    document["database"]["video_test_0001496"] = document["database"].pop("two")
    write(tmp_path, document, None)
    text, problems = shown(recipe("thumos14", tmp_path, "data.features=null").data)
    assert problems == [] and "1 are present: video_test_0001496" in text
    assert "1 of 200 Validation, 1 of 213 Test" in text and "2 of 20 classes" in text


def test_annotations_are_reported_without_features(tmp_path: Path):
    document = action_former("Validation", "Test", 30.0)
    document["database"]["two"]["annotations"] += instances(True, ("run", [70.0, 80.0]))
    write(tmp_path, document, None)
    config = recipe("thumos14", tmp_path, "data.clip=false")
    text, problems = shown(config.data.model_copy(update={"features": None}))
    assert "features were not checked: data.features is not set" in text and "background" in text
    assert [(p.video, p.kind) for p in problems] == [("two", "outside the video")]
    text, problems = shown(config.data)  # asked for, but not there: told, and a problem
    assert "features were not checked: data.features:" in text
    assert [(p.video, p.kind) for p in problems] == [("two", "outside the video"), ("all", "missing features")]
    with pytest.raises(InputError, match=r"data\.features"):
        load_data(config.data)


def test_annotations_alone_need_no_stride_but_a_rate(tmp_path: Path):
    write(tmp_path, action_former("Validation", "Test", None), None)
    data = recipe("thumos14", tmp_path, "data.features=null").data
    assert [p.kind for p in shown(data)[1]] == ["time grid", "time grid"]
    assert shown(data.model_copy(update={"stride": None}))[1] == []


def test_a_folder_is_reported_without_features_too(tmp_path: Path):
    write(tmp_path, action_former("train", "test", 30.0), None)
    text, problems = shown(FolderData(annotations=tmp_path / "truth.json"))
    assert problems == [] and "features were not checked" in text and "classes" not in text


def test_the_report_measures_the_boundaries(tmp_path: Path):
    write(tmp_path, action_former("Validation", "Test", 30.0), TimeGrid(4, 16, 30))
    text, problems = shown(recipe("thumos14", tmp_path).data)
    assert problems == []
    assert "change of features at 4 boundaries: H" in text and "change of features at 2 boundaries: H 1.00 bits" in text


# The real annotation files


def counts(data: DataConfig) -> dict[str | None, tuple[int, int]]:
    annotations, _ = open_source(data)
    return {r.subset: (r.recordings, r.instances) for r in statistics(annotations) if r.label is None}


def test_thumos14(shared_data: Path, tmp_path: Path):
    (tmp_path / "features").mkdir()
    truth = shared_data / "thumos14" / "thumos14.json"
    data = recipe("thumos14", tmp_path, f"data.annotations={truth}").data
    assert counts(data.model_copy(update={"clip": False})) == {"Test": (212, 3358), "Validation": (200, 3007)}
    assert counts(data) == {"Test": (212, 3332), "Validation": (200, 3003)}
    text, problems = shown(data.model_copy(update={"features": None}))
    assert problems == []
    text = " ".join(text.split())
    assert "200 of 200 Validation, 212 of 213 Test" in text and "20 of 20 classes" in text
    assert "2 are present: video_test_0000270, video_test_0001496" in text
    assert "0 instances cut to their recording, 30 dropped" in text


def test_activitynet(shared_data: Path, tmp_path: Path):
    (tmp_path / "features").mkdir()
    truth = shared_data / "activitynet" / "anet_anno_action.json"
    data = recipe("activitynet", tmp_path, f"data.annotations={truth}").data
    annotations, _ = open_source(data.model_copy(update={"clip": False}))
    videos = {name: len(annotations.subset(name).recordings) for name in ("training", "validation", "testing")}
    assert videos == {"training": 9649, "validation": 4728, "testing": 4851}
    for subset, expected in (("training", 14859), ("validation", 7293), ("testing", 0)):
        assert sum(map(len, annotations.subset(subset).truth().values())) == expected
    assert len(annotations.classes) == 200 and all(len(name) == 11 for name in annotations.recordings)
    cut = clipped(annotations)
    assert sum(map(len, cut.truth().values())) == 22152 - 12
    assert "3 instances cut to their recording, 12 dropped" in cut.notes[-1]
    assert "9649 of 10024 training, 4728 of 4926 validation, 4851 of 5044 testing" in cut.notes[1]
