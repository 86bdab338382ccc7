"""The configuration: files, overrides, and what is said about mistakes in them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporalzoom.config import (
    Config,
    changed,
    config_fields,
    dump_config,
    dump_tree,
    first_difference,
    load_config,
    parse_config,
    recipe_names,
    recipe_summary,
    recipe_text,
    unread_keys,
)
from temporalzoom.config.base import sections_of
from temporalzoom.config.data import INERTIAL_COMPANIONS
from temporalzoom.config.moved import MOVED, moved
from temporalzoom.config.networks import SECTIONS
from temporalzoom.config.recipes import parse_parts
from temporalzoom.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[1]
TOP = "seed, device, data, model, bdr, training, augment, backbone, inference, evaluation"
OF_TEMPORALMAXER = "name, width, standardize, stem, levels, heads, deep_layers, zoom, share, budget"
SOURCES = "folder, zoombench, zoombench_context, sbhar, tug, thumos14, activitynet, fineaction, ego4d_mq, epic_kitchens"
MODELS = "tzn, uniform-N, actionformer, tridet, temporalmaxer, bmn"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.yaml"


def complaint(path: Path | None = None, *overrides: str) -> str:
    """The message for a user: one line."""
    with pytest.raises(InputError) as caught:
        load_config(path, overrides)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500
    return message


# What is read


def test_without_a_file_all_is_default():
    config = load_config()
    assert config == Config()
    assert config.seed == 0 and config.data.source == "folder" and config.model.name == "tzn"
    assert (config.bdr.channels, config.bdr.radius) == ("start_end", 8.0)
    assert (config.training.learning_rate, config.training.weight_decay) == (1e-3, 0.05)


def test_a_file_changes_what_it_names_and_nothing_else(file: Path):
    file.write_text(
        "# a comment\nseed: 3\ntraining:\n  steps: 50\n  learning_rate: 3e-4\n"
        "data: {source: folder, fps: 25}\nmodel: {layer_scale: null}\n"
    )
    before, after = flat(Config().model_dump()), flat(load_config(file).model_dump())
    assert {key: after[key] for key in after if after[key] != before[key]} == {
        "seed": 3,
        "training.steps": 50,
        "training.learning_rate": 3e-4,  # YAML 1.1 takes it for text
        "data.fps": 25.0,
        "model.layer_scale": None,
    }


@pytest.mark.parametrize(
    "text", ["", "# nothing but a comment\n", "{}", "training:\n  # steps: 5\n", "model: {paper: }"]
)
def test_empty_files_and_sections_are_defaults(file: Path, text: str):
    file.write_text(text)
    assert load_config(file) == Config()
    assert load_config(file, ["training.steps=7", "data.fps=25"]).training.steps == 7


def test_overrides_come_after_the_file_and_in_order(file: Path):
    file.write_text("training: {steps: 50, batch_size: 2}")
    overrides = ["training.steps=60", "inference.refine=fuse", "training.steps=70", "bdr.radius=null"]
    config = load_config(file, overrides)
    assert (config.training.steps, config.training.batch_size) == (70, 2)
    assert config.inference.refine == "fuse" and config.bdr.radius is None
    assert load_config(file, iter(overrides)) == config


def test_the_text_of_an_override_may_be_anything():
    assert load_config(None, ["data.train_subset=a=b"]).data.train_subset == "a=b"
    assert load_config(None, ["data.prefix=["]).data.prefix == "["  # not YAML
    assert load_config(None, ["data.prefix=2024-99-99"]).data.prefix == "2024-99-99"  # a date that does not exist


def test_settings_that_only_fit_together_can_be_overridden_one_by_one():
    paper = load_config(None, ["model.paper.supervision=penalty", "model.paper.tau_min=0.4"]).model.paper
    assert (paper.supervision, paper.tau_min) == ("penalty", 0.4)


def test_data_paths_of_a_file_start_at_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sets").mkdir()
    file = tmp_path / "sets" / "mine.yaml"
    file.write_text("data: {annotations: truth.json, features: ../i3d}")
    monkeypatch.chdir(tmp_path)
    for path in (file, Path("sets/mine.yaml"), "sets/mine.yaml"):
        data = load_config(path).data
        assert data.annotations == tmp_path / "sets" / "truth.json"
        assert data.features == tmp_path / "i3d"
    file.write_text(f"data: {{annotations: {tmp_path / 'elsewhere.json'}}}")
    assert load_config(file).data.annotations == tmp_path / "elsewhere.json"


def test_data_paths_of_overrides_start_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sets").mkdir()
    file = tmp_path / "sets" / "mine.yaml"
    file.write_text("data: {annotations: truth.json, features: i3d}")
    monkeypatch.chdir(tmp_path)
    data = load_config(file, ["data.features=other"]).data
    assert (data.annotations, data.features) == (tmp_path / "sets" / "truth.json", tmp_path / "other")


def test_a_dumped_configuration_means_the_same_wherever_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("data: {source: folder, annotations: truth.json, fps: 25}\nbdr: {radius: null}")
    config = load_config("mine.yaml", ["training.learning_rate=1.5e-7", "data.features=i3d"])
    run = tmp_path / "runs" / "first" / "config.yaml"
    run.parent.mkdir(parents=True)
    run.write_text(dump_config(config))
    monkeypatch.chdir("/")
    assert load_config(run) == config
    assert parse_config(dump_tree(config)) == config
    assert set(yaml.safe_load(run.read_text())) == set(Config.model_fields) - {"backbone"}  # which nobody reads here


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "seed": st.integers(0, 2**31 - 1),
            "bdr": st.fixed_dictionaries(
                {}, optional={"radius": st.none() | st.floats(1, 1e9), "weight": st.floats(0, 10)}
            ),
            "training": st.fixed_dictionaries({}, optional={"learning_rate": st.floats(1e-12, 1e3)}),
            "data": st.fixed_dictionaries({}, optional={"train_subset": st.text(st.characters(codec="utf-8"))}),
        },
    )
)
def test_dump_and_load_is_the_same(tree: dict):
    config = parse_config(tree)
    assert parse_config(yaml.safe_load(dump_config(config))) == config


def test_a_configuration_never_changes():
    with pytest.raises(ValidationError):
        Config().training.steps = 5  # type: ignore[misc]


def test_every_key_of_the_tree_is_known_and_described():
    keys = config_fields()
    assert {"seed", "training", "training.steps", "model.bins", "model.paper", "model.paper.combine"} <= set(keys)
    for name in SECTIONS:
        tree = {"model": {"name": "uniform-6" if name == "uniform" else name}}
        leaves = set(flat(parse_config(tree).model_dump()))
        assert leaves <= set(config_fields(tree)) <= set(keys)
    # Of a published detector a setting may mean what it means elsewhere: described once.
    names = {key.rpartition(".")[2] for key, field in keys.items() if field.description}
    for key, field in keys.items():
        assert sections_of(field) or key.rpartition(".")[2] in names, f"{key} has no description"


def test_every_setting_is_used_by_a_recipe_a_page_or_a_table():
    """What nobody needs is no setting. The generated list of all settings does not count as a page."""
    used = {key for name in recipe_names() for part in parse_parts(recipe_text(name), name) for key in flat(part)}
    for section in (*SECTIONS.values(),):
        used |= set(flat(section.companions))
    used |= set(flat(INERTIAL_COMPANIONS))
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]
    sources = [*(REPOSITORY / "src" / "temporalzoom" / "experiments").rglob("*.py")]
    text = "\n".join(path.read_text() for path in (*pages, *sources) if path.name != "configuration.md")
    in_yaml = set(re.findall(r"^ +(\w+):", text, re.M))
    leaves = [key for key, field in config_fields().items() if not sections_of(field)]
    unused = [key for key in leaves if key not in used and key not in text and key.rpartition(".")[2] not in in_yaml]
    assert len(leaves) < 141 and unused == []


# What is given is used, or refused


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("model.name=actionformer model.dropout=0.5", "actionformer has no such setting; it is of tzn, uniform-N"),
        ("model.name=actionformer model.head=mlp", "actionformer has no such setting"),
        ("model.name=actionformer model.share=0.3", "model.share: has no effect here: model.deep_layers is 0"),
        ("model.name=tridet model.budget=0.3 model.deep_layers=0", "model.deep_layers is 0"),
        ("model.name=temporalmaxer model.heads=2", "without model.deep_layers the model has no attention"),
        ("model.name=temporalmaxer model.deep_layers=2 model.zoom=0", "model.zoom"),
        ("model.name=temporalmaxer model.deep_layers=2 model.pruning=true", "temporalmaxer has no such setting"),
        ("model.name=actionformer tzn.share=0.5", "tzn.share: is model.share now"),
        ("model.name=bmn model.levels=3", "bmn has no such setting; it is of tzn, uniform-N, actionformer"),
        ("model.name=bmn training.focal_alpha=0.3", "bmn has losses of its own"),
        ("model.name=bmn training.assignment=both", "training.assignment: has no effect here: bmn"),
        ("model.name=bmn training.positives=3", "training.positives: has no effect here"),
        ("training.assignment=hungarian", "of several levels"),
        ("bdr.enabled=false bdr.radius=4", "bdr.radius: has no effect here: bdr.enabled is false"),
        ("bdr.enabled=false inference.refine=snap", "there are no zero crossings"),
        ("inference.min_slope=0.3", "only inference.refine=snap"),
        ("bdr.smoothing=3", "at most 1.17 positions fit a radius of 8, got 3"),
        ("model.paper.supervision=penalty", "penalty needs tau_min"),
        ("model.paper.keep=0.5", "model.pruning is false"),
        ("model.depth=false model.share=0.2", "model.depth is false"),
        ("model.window=4", "without shallow layers"),
        ("inference.video_scores=none.json", "class-agnostic"),
        ("inference.tiou_threshold=0.4", "only hard suppression has it"),
        ("model.name=tridet bdr.enabled=false inference.certainty=1", "predicts no variances"),
        ("backbone.size=64", "data.videos"),
        ("data.videos=clips augment.drop=0.3", "backbone.augment"),
        ("augment.rotate=5", "raw signals"),
        ("data.source=zoombench data.fps=25", "the source zoombench does not read it; it is of folder"),
        ("data.source=thumos14 data.task=verb", "task: is of epic_kitchens"),
    ],
)
def test_a_setting_that_nobody_reads_is_refused(overrides: str, message: str):
    assert message in complaint(None, *overrides.split())


def test_what_an_override_leaves_without_effect_is_dropped_from_the_file(file: Path):
    file.write_text("bdr: {radius: 4}\nmodel: {name: tzn, share: 0.2, width: 32}")
    config = load_config(file, ["bdr.enabled=false", "model.name=uniform-2"])
    assert config.model.width == 32 and "share" not in dump_tree(config)["model"]
    assert dump_tree(config)["bdr"] == {"enabled": False}


def test_another_architecture_keeps_what_holds_for_it_too(file: Path):
    file.write_text("model: {name: tzn, width: 32, drop_path: 0.3, layer_scale: 0.5, levels: 3}")
    uniform = load_config(file, ["model.name=uniform-2"]).model
    assert (uniform.width, uniform.drop_path, uniform.layer_scale, uniform.levels) == (32, 0.3, 0.5, 3)
    published = load_config(file, ["model.name=actionformer"]).model
    assert (published.width, published.drop_path, published.layer_scale, published.levels) == (32, 0.1, 1e-4, 6)


def test_the_field_s_detectors_are_the_published_ones_by_name_alone():
    former = load_config(None, ["model.name=actionformer"])
    assert (former.model.width, former.model.window, former.model.layer_scale) == (512, 9, 1e-4)
    assert former.training.quality_power == 0
    assert load_config(None, ["model.name=tridet"]).training.quality_power == 0.2
    assert load_config(None, ["model.name=tridet", "training.quality_power=0.5"]).training.quality_power == 0.5
    bmn = load_config(None, ["model.name=bmn"])
    assert (bmn.inference.suppression, bmn.inference.sigma, bmn.training.weight_decay) == ("bmn", 0.4, 1e-4)


def test_raw_signals_bring_their_augmentation():
    assert load_config(None, ["data.raw=true"]).augment.warp == 0.3
    assert load_config(None, ["data.raw=true", "augment.warp=0"]).augment.warp == 0
    assert load_config(None, ["data.source=tug"]).augment.rotate == 15
    assert load_config().augment.shift is False


def test_old_keys_name_the_new_ones():
    known = set(config_fields())
    for key in MOVED:
        assert key not in known
        found = moved(key)
        assert found is not None and found.startswith(f"{key}: is ")
        if " now" in found and "option" not in found:
            assert found.split()[2] in known, found
        assert complaint(None, f"{key}=1") == f"override {f'{key}=1'!r}: {found}"
    assert "model.deep_layers" in complaint(None, "model.name=tzn-9")


def test_old_sections_name_the_new_ones(file: Path):
    file.write_text("tzn: {share: 0.2}")
    assert complaint(file) == f"{file}: tzn: its settings are in the section 'model' now"


# Recipes


def test_every_recipe_is_valid_and_comes_back_from_its_dump():
    assert {"zoombench", "sbhar", "tug", "rats", "thumos14", "paper"} <= set(recipe_names())
    for name in recipe_names():
        config = load_config(name)
        assert parse_config(yaml.safe_load(dump_config(config))) == config, name
        assert len(recipe_summary(name)) > 20, name


def test_a_file_builds_on_a_recipe_or_on_another_file(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(file.parent)
    file.write_text("base: sbhar\ndata: {root: phones}\ntraining: {steps: 7}")
    config = load_config(file)
    assert config.model.stem == (5, 5) and config.training.steps == 7
    assert config.data.root == file.parent / "phones"
    deeper = file.parent / "sub" / "more.yaml"
    deeper.parent.mkdir()
    deeper.write_text("base: ../mine.yaml\nmodel: {stem: []}")
    assert load_config(deeper).model.stem == () and load_config(deeper).data.root == file.parent / "phones"
    assert load_config("sbhar").data.root == file.parent / "data" / "sbhar"  # of a recipe: the working folder


def test_bases_that_do_not_exist_or_never_end(file: Path):
    file.write_text("base: sbharr")
    assert complaint(file).endswith("nor is it a recipe; did you mean 'sbhar'?")
    file.write_text("base: mine.yaml")
    assert "goes round in a circle" in complaint(file)
    file.write_text("base: [a]")
    assert complaint(file) == f"{file}: base: must be a recipe's name or a file, got ['a']"


def test_the_paper_s_recipe_is_its_literal_one():
    config = load_config("paper")
    model, paper = config.model, config.model.paper
    assert (model.shallow_layers, model.deep_layers, model.width, model.heads) == (2, 7, 768, 12)
    assert (model.expansion * model.width, model.window, model.zoom, paper.head_width) == (3072, None, 0, 256)
    assert (paper.combine, config.training.assignment, config.training.betas) == ("residual", "hungarian", (0.9, 0.999))
    assert (config.bdr.channels, config.bdr.radius, config.bdr.weight) == ("joint", None, 1.0)
    assert (paper.compute_weight, paper.prune_weight, paper.uncertainty_weight) == (0.05, 0.01, 0.1)


def test_a_loaded_configuration_can_be_changed():
    config = load_config("sbhar")
    other = changed(config, ["training.steps=3"])
    assert first_difference(config, other) == ("training.steps", 1200, 3)
    assert first_difference(config, changed(config, ["device=cpu"])) is None  # where it runs is no part of what it is
    name, old, new = first_difference(config, changed(config, ["model.name=actionformer"]))
    assert (name, old, new) == ("model.name", "tzn", "actionformer")


def test_unread_keys_are_keys():
    for name in recipe_names():
        assert set(unread_keys(load_config(name))) <= set(config_fields())


# What is said about mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {step: 5}", "unknown key 'training.step' (value 5); did you mean 'training.steps'?"),
        ("model: {paper: {combin: features}}",
         "unknown key 'model.paper.combin' (value 'features'); did you mean 'model.paper.combine'?"),
        ("trainning: {steps: 5}", "unknown key 'trainning' (value {'steps': 5}); did you mean 'training'?"),
        ("sed: 3", "unknown key 'sed' (value 3); did you mean 'seed'?"),
        ("steps: 5", "unknown key 'steps' (value 5); did you mean 'training.steps'?"),
        ("length: 5", "unknown key 'length' (value 5); did you mean 'training.length'?"),
        ("training: {dropout: 0.2}", "unknown key 'training.dropout' (value 0.2); did you mean 'model.dropout'?"),
        ("lr: 5", f"unknown key 'lr' (value 5); valid at the top are: {TOP}"),
        ("model: {name: temporalmaxer, lr: null}",
         f"unknown key 'model.lr' (value null); valid in 'model' are: {OF_TEMPORALMAXER}"),
        ("training: {on: 5}", "unknown key true in 'training': keys must be text"),
        ("1: 5", "unknown key 1: keys must be text"),
    ],
)  # fmt: skip
def test_unknown_keys(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {steps: many}", "training.steps: must be a whole number, got 'many'"),
        ("training: {steps: 2.5}", "training.steps: must be a whole number, got 2.5"),
        ("training: {steps: [1,\n 2]}", "training.steps: must be a whole number, got [1, 2]"),
        ("seed:", "seed: must be a whole number, got null"),
        ("model: {shallow_layers: 1, window: none}", "model.window: must be a whole number or null, got 'none'"),
        ("training: {learning_rate: fast}", "training.learning_rate: must be a number, got 'fast'"),
        ("training: {learning_rate: .inf}", "training.learning_rate: must be a finite number, got inf"),
        ("bdr: {enabled: maybe}", "bdr.enabled: must be true or false, got 'maybe'"),
        ("data: {train_subset: 2014}", "data.train_subset: must be text, got 2014"),
        ("data: {features: [a]}", "data.features: must be a path or null, got ['a']"),
    ],
)
def test_wrong_types(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("inference: {refine: newtn}",
         "inference.refine: must be one of none, snap, newton, fuse, got 'newtn'; did you mean 'newton'?"),
        ("data: {source: null}", f"data.source: must be one of {SOURCES}, got null"),
        ("data: {source: sbahr}", f"data.source: must be one of {SOURCES}, got 'sbahr'; did you mean 'sbhar'?"),
        ("model: {name: tznn}", f"model.name: must be one of {MODELS}, got 'tznn'; did you mean 'tzn'?"),
        ("model: {name: uniform-}", f"model.name: must be one of {MODELS}, got 'uniform-'; did you mean 'uniform-N'?"),
        ("training: {precision: 16}", "training.precision: must be one of float32, bfloat16, float16, got 16"),
    ],
)  # fmt: skip
def test_bad_choices(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training: {steps: 0}", "training.steps: must be at least 1, got 0"),
        ("seed: -1", "seed: must be at least 0, got -1"),
        ("inference: {sigma: 0}", "inference.sigma: must be above 0, got 0"),
        ("inference: {max_move: 1.5}", "inference.max_move: must be at most 1, got 1.5"),
        ("bdr: {radius: -2}", "bdr.radius: must be at least 1 or null, got -2"),
        ("data: {keypoints: xyc}", "data: keypoints: are those of raw poses; needs raw: true"),
    ],
)  # fmt: skip
def test_out_of_range(file: Path, text: str, said: str):
    file.write_text(text)
    assert complaint(file) == f"{file}: {said}"


@pytest.mark.parametrize("value", ["5", "fast", "[1, 2]", "true"])
def test_a_section_that_is_none(file: Path, value: str):
    file.write_text(f"training: {value}")
    shown = value if value in ("5", "[1, 2]", "true") else repr(value)
    assert complaint(file) == f"{file}: training: must be a section with keys, got {shown}"
    assert complaint(file, "training.steps=5") == complaint(file)  # the file is to blame, not the override
    for section in ("data", "model"):
        file.write_text(f"{section}: {value}")
        assert complaint(file) == f"{file}: {section}: must be a section with keys, got {shown}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("training.steps", "override 'training.steps': must have the form key=value, such as training.steps=500"),
        ("=5", "override '=5': must have the form key=value, such as training.steps=500"),
        ("", "override '': must have the form key=value, such as training.steps=500"),
        ("training.step=5", "override 'training.step=5': unknown key 'training.step'; did you mean 'training.steps'?"),
        ("trainning.length=5",
         "override 'trainning.length=5': unknown key 'trainning.length'; did you mean 'training.length'?"),
        ("training.steps.x=3",
         "override 'training.steps.x=3': unknown key 'training.steps.x'; did you mean 'training.steps'?"),
        ("seed.x=3", "override 'seed.x=3': unknown key 'seed.x'; did you mean 'seed'?"),
        (
            ".=3",
            f"override '.=3': unknown key '.'; valid at the top are: {TOP}",
        ),
        ("evaluation=5",
         "override 'evaluation=5': 'evaluation' is a section; set one of its keys: thresholds"),
        ("training.steps=", "override: training.steps: must be a whole number, got null"),
        ("training.steps=0", "override: training.steps: must be at least 1, got 0"),
        ("seed=5=6", "override: seed: must be a whole number, got '5=6'"),
    ],
)  # fmt: skip
def test_bad_overrides(file: Path, override: str, said: str):
    assert complaint(None, override) == said
    file.write_text("seed: 3")
    assert complaint(file, "training.batch_size=2", override) == said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"seed: 1\ntraining: [1, 2", ": not valid YAML (line 2: "),
        (b"seed: 1\na: b: c", ": not valid YAML (line 2: mapping values are not allowed here)"),
        (b"seed: 1\n\tx: 2", ": not valid YAML (line 2: "),
        (b"x: !!python/name:os.system", ": not valid YAML (line 1: "),
        (b"seed: \x01", ": not valid YAML ("),
        (b"seed: \xff", ": not valid YAML ("),
        (b"seed: 2024-99-99", ": not valid YAML (month must be in 1..12)"),
        (b"- training", ": must hold sections such as 'training:', got ['training']"),
        (b"just words", ": must hold sections such as 'training:', got 'just words'"),
        (b"5", ": must hold sections such as 'training:', got 5"),
    ],
)
def test_files_that_are_no_configuration(file: Path, content: bytes, said: str):
    file.write_bytes(content)
    assert complaint(file).startswith(f"{file}{said}")


def test_files_that_cannot_be_read(tmp_path: Path):
    assert complaint(tmp_path / "nope.yaml") == f"{tmp_path / 'nope.yaml'}: cannot be read (No such file or directory)"
    assert complaint(tmp_path).startswith(f"{tmp_path}: cannot be read (Is a directory)")


def test_long_values_are_shortened(file: Path):
    file.write_text(f"training: {{steps: {'x' * 1000}}}")
    assert complaint(file).endswith(f"got '{'x' * 56}...")


def test_a_tree_from_elsewhere_is_named():
    with pytest.raises(InputError, match=r"^runs/a/checkpoint.json: seed: must be a whole number, got 'x'$"):
        parse_config({"seed": "x"}, source="runs/a/checkpoint.json")


@given(st.sampled_from(sorted(config_fields({}))), st.data())
def test_one_wrong_letter_finds_the_key_again(key: str, data: st.DataObject):
    """Any key of more than four letters with one letter left out of its last word leads back to it."""
    section, _, word = key.rpartition(".")
    if len(word) <= 4:
        return
    at = data.draw(st.integers(0, len(word) - 1))
    wrong = f"{section}.{word[:at]}{word[at + 1 :]}".lstrip(".")
    if wrong not in config_fields():
        assert complaint(None, f"{wrong}=1").endswith(f"; did you mean {key!r}?")


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return leaves
