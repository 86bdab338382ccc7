"""The whole path: videos are extracted, a model is trained on that, and finds the actions in other videos."""

import csv
import doctest
import io
import json
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.inference.localizer import Localizer
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.extraction_processes import extract_features
from temporalzoom.training import train
from temporalzoom.workflows.localize import localize_files

av = pytest.importorskip("av")
REPOSITORY = Path(__file__).resolve().parents[2]
CLIPS = SimpleNamespace(**runpy.run_path(str(REPOSITORY / "tests" / "signals" / "conftest.py")))
QUIET = Console(quiet=True)
TINY = """
model.name=uniform-1 model.width=16 model.heads=2 model.window=5 model.head=mlp model.levels=1 model.drop_path=0
model.layer_scale=null augment.drop=0 training.positives=null training.box_loss=l1+giou inference.certainty=0
training.steps=80 training.batch_size=4 training.length=32 training.learning_rate=0.01 training.warmup_steps=5
""".split()


def render(path: Path, start: float, end: float, fps: int = 20, seconds: float = 6.0) -> Path:
    """A still picture over which patches flicker from `start` to `end`."""
    still = CLIPS.textured(7, 64, 64)
    frames = range(round(seconds * fps))
    images = [CLIPS.textured(frame, 64, 64) if start <= frame / fps < end else still for frame in frames]
    return CLIPS.render(path, images, fps=fps)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """videos/ of 20 fps, features/, annotations that say 25 fps, a configuration that says nothing, and a run."""
    home = tmp_path_factory.mktemp("home")
    (home / "videos").mkdir()
    database = {}
    for name, start, end in (("one", 1.0, 3.0), ("two", 2.5, 4.5), ("three", 3.5, 5.0), ("four", 0.8, 2.3)):
        render(home / "videos" / f"{name}.mp4", start, end)
        annotations = [{"label": "flicker", "segment": [start, end]}]
        database[name] = {"subset": "train", "duration": 6.0, "fps": 25, "annotations": annotations}
    (home / "annotations.json").write_text(json.dumps({"database": database}))
    extract_features([home / "videos"], home / "features", console=QUIET)
    files = {"annotations": str(home / "annotations.json"), "features": str(home / "features")}
    (home / "config.yaml").write_text(yaml.safe_dump({"data": {"source": "folder"} | files}))
    config = load_config(home / "config.yaml", TINY)
    split = load_data(config.data).train
    assert split is not None
    train(config, split, home / "run")
    render(home / "new.mp4", 2.0, 3.6, fps=25)
    return home


@pytest.fixture(scope="module")
def unknown(home) -> Path:
    """The same model, as if it had been trained on features of unknown origin."""
    run = home / "unknown"
    shutil.copytree(home / "run", run)
    [file] = run.rglob("checkpoint.json")
    told = json.loads(file.read_text())
    assert told["origin"] == {"backbone": "motion", "stride": 4, "window": 8, "fps": None, "options": {}}
    file.write_text(json.dumps(told | {"origin": None}))
    return run


def test_a_video_gives_what_its_features_give(home, tmp_path):
    """On its own clock of 25 fps, though training saw 20, and at the right times."""
    assert Localizer.load(home / "run").description.origin == ExtractionSettings("motion", 4, 8)
    extract_features([home / "new.mp4"], tmp_path, console=QUIET)
    options = {"threshold": 0.0, "console": QUIET}
    [stored] = localize_files([tmp_path / "new.npy"], home / "run", **options).segments.values()
    result = localize_files([home / "new.mp4"], home / "run", **options)
    assert result.segments["new"] == stored and result.videos == {"new": home / "new.mp4"} and not result.failed
    [(start, end, label, _)] = stored.top(1)
    assert label == "flicker" and start == pytest.approx(2.0, abs=0.4) and end == pytest.approx(3.6, abs=0.4)
    assert stored.ends.max() <= 6.0
    other = localize_files([home / "new.mp4"], home / "run", stride=2, fps=10, **options).segments["new"]
    assert other != stored and other.ends.max() <= 6.0


def test_features_that_were_resized(home, tmp_path, tzoom):
    """Trained on 20 positions per video: video, described file and named stride and window give the same."""
    config = load_config(home / "config.yaml", [*TINY, "data.resize=20", "training.steps=2"])
    split = load_data(config.data).train
    assert split is not None and {len(sample) for sample in split.samples} == {20}
    train(config, split, tmp_path / "run")
    shutil.copy(home / "features" / "two.npy", tmp_path / "two.npy")  # without its description
    options = {"threshold": 0.0, "console": QUIET}
    found = [
        localize_files([home / file], tmp_path / "run", **options).segments["two"]
        for file in ("videos/two.mp4", "features/two.npy")
    ]
    found.append(
        localize_files([tmp_path / "two.npy"], tmp_path / "run", stride=4, window=8, **options).segments["two"]
    )
    localizer = Localizer.load(tmp_path / "run")
    found.append(localizer(home / "videos" / "two.mp4", threshold=0.0))
    found.append(localizer(str(home / "features" / "two.npy"), threshold=0.0))
    found.append(localizer(np.load(tmp_path / "two.npy"), stride=4, window=8, threshold=0.0))
    assert all(other == found[0] for other in found) and 3 < found[0].ends.max() <= 6
    code, _, err = tzoom("localize", tmp_path / "two.npy", "--model", tmp_path / "run")
    assert code == 2 and "two.npy: the model resizes features" in err and "stride" in err


def test_the_example_of_the_localizer_runs(home, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "tennis").symlink_to(home / "run")
    shutil.copy(home / "new.mp4", tmp_path / "match9.mp4")
    extract_features([tmp_path / "match9.mp4"], tmp_path / "features", console=QUIET)
    monkeypatch.chdir(tmp_path)
    [example] = doctest.DocTestFinder(recurse=False).find(Localizer, "Localizer")
    for line in example.examples:
        exec(compile(line.source, "<Localizer>", "exec"), example.globs)
    assert len(example.examples) > 4 and "flicker" in capsys.readouterr().out


def test_many_videos_share_one_backbone(home, monkeypatch):
    """Building one loads its weights."""
    from temporalzoom.inference import localizer as module

    built = []
    original = module.backbone
    monkeypatch.setattr(
        module, "backbone", lambda name, *at, **options: built.append(name) or original(name, *at, **options)
    )
    localizer = Localizer.load(home / "run")
    frames: list[int] = []
    for name in ("one", "two"):
        localizer(home / "videos" / f"{name}.mp4", progress=frames.append)
    assert built == ["motion"] and sum(frames) == 2 * 120


def test_names_are_no_markup(home, tmp_path):
    shutil.copy(home / "features" / "one.npy", tmp_path / "[red]one.npy")
    console = Console(file=io.StringIO(), width=300)
    localize_files([tmp_path / "[red]one.npy"], home / "run", threshold=1.0, console=console)
    assert "[red]one: no segment reaches the score 1" in console.file.getvalue()


def test_unknown_origin_needs_a_name(tzoom, home, unknown, tmp_path):
    code, _, err = tzoom("localize", home / "new.mp4", "--model", unknown)
    assert code == 2 and err.startswith("error:") and "--backbone" in err and len(err.splitlines()) == 1
    found = [
        localize_files([home / "videos" / "one.mp4"], run, backbone=name, threshold=0.0, console=QUIET).segments["one"]
        for run, name in ((home / "run", None), (unknown, "motion"))
    ]
    assert found[0] == found[1] and len(found[0])
    code, _, err = tzoom("localize", home / "new.mp4", "--model", unknown, "--backbone", "slow")
    assert code == 2 and "unknown backbone 'slow'" in err and len(err.splitlines()) == 1


def test_what_does_not_fit_is_one_line(tzoom, home, tmp_path):
    shutil.copy(home / "features" / "one.npy", tmp_path / "one.npy")
    told = json.loads((home / "features" / "one.json").read_text())
    (tmp_path / "one.json").write_text(json.dumps(told | {"backbone": "swin3d_t"}))
    for arguments, words in (
        ((tmp_path / "one.npy",), "backbone swin3d_t, the model was trained with backbone motion"),
        ((home / "features" / "one.npy", "--stride", 2), "one.json: stride is 4, not 2; leave it out"),
        ((home / "new.mp4", "--stride", 2.5), "stride: a whole number of frames"),
        ((home / "new.mp4", "--out", "x.doc"), "x.doc: unknown format '.doc'"),
        ((home / "new.mp4", "--preview", "x.gif"), "x.gif: a preview is written as"),
        ((home / "new.mp4", "--preview", home / "new.mp4"), "is the video itself"),
        ((home / "videos", "--preview", "x.mp4"), "--preview: shows one video, here are 4"),
    ):
        code, _, err = tzoom("localize", *arguments, "--model", home / "run")
        assert code == 2 and words in err and err.startswith("error:") and len(err.splitlines()) == 1, err


def test_features_made_anew_by_another_backbone_are_not_taken_for_those_of_training(tzoom, home, tmp_path):
    """They may have as many channels: scores would be bad, and nobody would know why."""
    shutil.copytree(home / "features", tmp_path / "features")
    for file in (tmp_path / "features").glob("*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"backbone": "swin3d_t"}))
    shutil.copytree(home / "run", tmp_path / "run")
    for file in (tmp_path / "run" / "config.yaml", *(tmp_path / "run").rglob("checkpoint.json")):
        file.write_text(file.read_text().replace(str(home / "features"), str(tmp_path / "features")))
    run = ("--resume", "--out", tmp_path / "run")
    on_train = "data.test_subset=train"
    file.write_text(file.read_text().replace('"test_subset": "test"', '"test_subset": "train"'))
    for command in (("eval", "--model", tmp_path / "run"), ("train", tmp_path / "run" / "config.yaml", on_train, *run)):
        code, _, err = tzoom(*command)
        assert code == 2 and len(err.splitlines()) == 1 and f"error: {tmp_path / 'features'}: " in err
        assert "backbone swin3d_t, the model was trained with backbone motion" in err


def test_a_backbone_of_another_width(tzoom, home, monkeypatch):
    from temporalzoom.signals.backbones import registry
    from temporalzoom.signals.backbones.motion import Motion

    class Narrow(Motion):
        width = 7

    monkeypatch.setitem(registry._builders, "narrow", Narrow)
    code, _, err = tzoom("localize", home / "new.mp4", "--model", home / "run", "--backbone", "narrow")
    assert code == 2 and len(err.splitlines()) == 1
    assert "backbone narrow: makes 7 channels" in err and "was trained with 316" in err


def test_what_cannot_be_decoded_is_named_and_the_others_go_on(tzoom, home, tmp_path):
    mixed = tmp_path / "mixed"
    (mixed / "below").mkdir(parents=True)
    shutil.copy(home / "new.mp4", mixed / "below" / "new.mp4")
    whole = (home / "new.mp4").read_bytes()
    (mixed / "half.mp4").write_bytes(whole[: len(whole) // 2])
    (mixed / "text.mp4").write_text("no video")
    shutil.copy(home / "features" / "one.npy", mixed / "one.npy")
    shutil.copy(home / "new.mp4", tmp_path / "film.download")  # known by looking at it
    (tmp_path / "notes.txt").write_text("no video either")
    files = (mixed, tmp_path / "film.download", tmp_path / "notes.txt")
    out = tmp_path / "found.csv"
    code, printed, err = tzoom("localize", *files, "--model", home / "run", "--threshold", 0, "--top", 2, "--out", out)
    assert code == 2 and f"wrote {out}" in printed and "Traceback" not in err
    failed = [line for line in err.splitlines() if line.startswith("failed:")]
    assert len(failed) == 3 and err.splitlines()[-3:] == failed
    for name in ("half.mp4", "text.mp4", "notes.txt"):
        assert sum(name in line for line in failed) == 1
    found = [row["video"] for row in csv.DictReader(out.read_text().splitlines())]
    assert sorted(set(found)) == ["film", "new", "one"] and len(found) == 6
    code, _, err = tzoom("localize", mixed / "text.mp4", "--model", home / "run")
    assert code == 2 and err.splitlines()[-1].startswith("error:") and "text.mp4" in err


@pytest.mark.parametrize("suffix", ["json", "csv", "vtt", "srt", "eaf", "labelstudio.json"])
def test_every_format_is_written(tzoom, home, tmp_path, suffix):
    out = tmp_path / f"new.{suffix}"
    code, printed, _ = tzoom("localize", home / "new.mp4", "--model", home / "run", "--threshold", 0, "--out", out)
    assert code == 0 and f"wrote {out}" in printed and "flicker" in out.read_text()
    if suffix in ("eaf", "labelstudio.json"):
        assert str(home / "new.mp4") in out.read_text()
    if suffix == "labelstudio.json":  # whole frames of the video's own rate
        [task] = json.loads(out.read_text())
        best = max(task["predictions"][0]["result"], key=lambda r: r["score"])
        [span] = best["value"]["ranges"]
        assert span["start"] == pytest.approx(2.0 * 25, abs=10) and span["end"] == pytest.approx(3.6 * 25, abs=10)


def test_a_preview_has_every_frame_of_the_video(tzoom, home, tmp_path):
    out = tmp_path / "p.mp4"
    code, printed, _ = tzoom(
        "localize", home / "new.mp4", "--model", home / "run", "--top", 1, "--threshold", 0, "--preview", out
    )
    assert code == 0 and "flicker" in printed and f"wrote {out}" in printed
    with av.open(str(out)) as container:
        frames = list(container.decode(video=0))
    times = [float(frame.pts * frame.time_base) for frame in frames]
    np.testing.assert_allclose(times, np.arange(150) / 25, atol=1e-4)


def test_what_was_found_is_shown_where_it_cannot_be_written(tzoom, home, tmp_path):
    (tmp_path / "file").write_text("no folder")
    targets = {"--out": tmp_path / "file" / "x.csv", "--preview": tmp_path / "file" / "x.mp4"}
    arguments = [part for pair in targets.items() for part in pair]
    code, printed, err = tzoom("localize", home / "new.mp4", "--model", home / "run", "--threshold", 0, *arguments)
    failed = [line for line in err.splitlines() if line.startswith("failed:")]
    assert code == 2 and "flicker" in printed and "Traceback" not in err
    assert [str(path) in line for path, line in zip(targets.values(), failed, strict=True)] == [True, True]


@pytest.mark.slow
def test_real_recordings(home, shared_data, tzoom, tmp_path):
    """Four clips of other sizes, rates and lengths than the model has seen: all are decoded, times lie within them."""
    videos = sorted((shared_data / "video").glob("*.mp4"))
    if not videos:
        pytest.skip("no clips in ../shared/data/video")
    out = tmp_path / "found.json"
    code, _, err = tzoom("localize", *videos, "--model", home / "run", "--threshold", 0, "--top", 5, "--out", out)
    assert code == 0, err
    results = json.loads(out.read_text())["results"]
    assert set(results) == {video.stem for video in videos}
    for video in videos:
        with av.open(str(video)) as container:
            seconds = float(container.duration) / 1e6
        assert results[video.stem] and all(r["segment"][1] <= seconds + 0.1 for r in results[video.stem])
    code, _, err = tzoom("localize", videos[-1], "--model", home / "run", "--threshold", 0, "--top", 5,
                         "--preview", tmp_path / "p.mp4")  # fmt: skip
    with av.open(str(videos[-1])) as before, av.open(str(tmp_path / "p.mp4")) as after:
        assert sum(1 for _ in before.decode(video=0)) == sum(1 for _ in after.decode(video=0))
        assert after.streams.video[0].height <= 480 + 200
