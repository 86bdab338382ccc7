"""The section `data`: a choice by `source`, each with the settings that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from temporalzoom.config.base import BelowOne, FromZero, Length, NotNegative, Positive, Section, Share

Tree = dict[str, dict[str, Any]]
# What the recipes of raw signals share: crops begin at any row, and time is warped before windows are cut ...
RAW_COMPANIONS: Tree = {"augment": {"shift": True, "warp": 0.3}}
# ... and sensors are turned, as a phone in a pocket is.
INERTIAL_COMPANIONS: Tree = {"augment": {"shift": True, "warp": 0.3, "rotate": 15.0}}
# Features that a backbone makes change as it is trained: their mean and variance are not known before.
VIDEO_COMPANIONS: Tree = {"model": {"standardize": False}}
# The protocols of the field's data sets count segments per video, however long it is.
PROTOCOL_COMPANIONS: Tree = {"inference": {"limit_span": None}}


class Splits(Section):
    """Who is trained on and who is scored."""

    leave_out: str | None = None
    """the recordings of this subject are the test subset, all others train"""
    validation_fold: Annotated[int, Field(ge=0, lt=4)] | None = None
    """for tuning: every fourth subject of the training subset plays the test, and the real test subset stays unseen"""
    folds: Annotated[int, Field(ge=2, le=10**6)] | None = None
    """cross-validation: all subjects, in order, are dealt to this many folds"""
    fold: FromZero = 0
    """with `folds`: the subjects of this one are the test subset, all others train"""

    @model_validator(mode="after")
    def _one_way_to_split(self) -> Splits:
        if self.folds is None:
            if self.fold:
                raise ValueError(f"fold: number {self.fold} of how many? give folds too")
            return self
        if self.fold >= self.folds:
            raise ValueError(f"fold: {self.folds} folds are numbered from 0 to {self.folds - 1}, got {self.fold}")
        if self.leave_out is not None:
            raise ValueError("folds: says who is tested, and so does leave_out; give one of them")
        return self


class AnnotatedFiles(Splits):
    """One annotation file, and one feature file (or video) per recording."""

    root: ClassVar[None] = None

    annotations: Path | None = None
    """annotation file (JSON); relative to the configuration file"""
    features: Path | None = None
    """folder with one feature file per recording, or an .npz archive; relative to the configuration file"""
    videos: Path | None = None
    """folder with one video per recording, to train a backbone too, in the place of `features`"""
    prefix: str = ""
    """what the names of feature files begin with, such as `v_`"""
    stride: Positive | None = None
    """frames between two feature vectors; null: `tzoom extract` left word beside them; of `zoombench`: 4 frames"""
    window: NotNegative | None = None
    """frames that a feature vector covers; null: the stride"""
    fps: Positive | None = None
    """frames per second; null: the annotation file says it per recording"""
    background: tuple[str, ...] = ()
    """labels that are no actions: neither trained nor scored"""
    class_agnostic: bool = False
    """learn when something happens, not what; `inference.video_scores` may add the labels"""
    clip: bool = False
    """cut instances to their recording, drop those of which nothing is left, and say how many"""
    resize: Length | None = None
    """interpolate the features of every recording to this many positions; null: as they are"""
    train_subset: str = "train"
    """subset to train on"""
    test_subset: str = "test"
    """subset to score"""
    test_recordings: tuple[str, ...] = ()
    """patterns such as `rat4*`: these recordings are the test subset, all others train"""
    soft_labels: Path | None = None
    """instances with scores (as `tzoom eval --out` writes) to train on, in the place of annotated ones; null: none"""


class FolderData(AnnotatedFiles):
    """Own data."""

    sensors: ClassVar[str] = ""
    task: ClassVar[None] = None

    source: Literal["folder"] = "folder"
    """`folder`: own data; `zoombench`: the embedded benchmark; `sbhar`, `tug`: sensor data sets; or a video data set"""
    raw: bool = False
    """files hold raw signals, one row per frame; windows are cut from them"""
    missing: Literal["error", "interpolate"] = "error"
    """NaN: an error, or interpolated in time, with one more channel per channel that says where"""
    keypoints: Annotated[str, Field(pattern="^[a-z]*$")] = ""
    """raw poses: what the values of a keypoint are, such as `xyc`; distances and speeds replace coordinates"""

    derivatives: bool = False
    """raw signals: how fast every channel changes, as further channels; for positions, angles and other slow signals"""

    @model_validator(mode="after")
    def _keypoints_of_raw_poses(self) -> FolderData:
        if self.derivatives and not self.raw:
            raise ValueError("derivatives: are those of raw signals; needs raw: true")
        if self.derivatives and self.keypoints:
            raise ValueError("derivatives: keypoints have speeds of their own; give one of the two")
        if self.keypoints and not self.raw:
            raise ValueError("keypoints: are those of raw poses; needs raw: true")
        if self.keypoints and not set("xyz") & set(self.keypoints):
            raise ValueError(f"keypoints: {self.keypoints} has no coordinate; a letter per value, such as xy or xyc")
        return self


class VideoSetData(AnnotatedFiles):
    """The field's data sets, in the file formats of ActionFormer and OpenTAD."""

    raw: ClassVar[bool] = False
    missing: ClassVar[str] = "error"
    keypoints: ClassVar[str] = ""
    derivatives: ClassVar[bool] = False
    sensors: ClassVar[str] = ""

    source: Literal["thumos14", "activitynet", "fineaction", "ego4d_mq", "epic_kitchens"]
    clip: bool = True
    task: Literal["verb", "noun"] | None = None
    """of `epic_kitchens`: which of its two sets of labels"""

    @model_validator(mode="after")
    def _task_of_epic_kitchens(self) -> VideoSetData:
        if self.task is not None and self.source != "epic_kitchens":
            raise ValueError(
                f"task: is of epic_kitchens, which has verbs and nouns; {self.source} has one set of labels"
            )
        return self


class InertialData(Splits):
    """Sensor data sets, in the folder as their authors publish it."""

    annotations: ClassVar[None] = None
    features: ClassVar[None] = None
    videos: ClassVar[None] = None
    prefix: ClassVar[str] = ""
    fps: ClassVar[None] = None
    raw: ClassVar[bool] = True
    missing: ClassVar[str] = "error"
    keypoints: ClassVar[str] = ""
    derivatives: ClassVar[bool] = False
    background: ClassVar[tuple[str, ...]] = ()
    class_agnostic: ClassVar[bool] = False
    clip: ClassVar[bool] = False
    resize: ClassVar[None] = None
    train_subset: ClassVar[str] = "train"
    test_subset: ClassVar[str] = "test"
    test_recordings: ClassVar[tuple[str, ...]] = ()
    soft_labels: ClassVar[None] = None
    task: ClassVar[None] = None

    source: Literal["sbhar", "tug"]
    root: Path | None = None
    """folder of `sbhar` (as UCI publishes it) or `tug` (phone.json, phone.npz); relative to the configuration file"""
    stride: Positive | None = None
    window: NotNegative | None = None
    sensors: Literal["acc", "acc+gyro"] = "acc+gyro"
    """of `sbhar` and `tug`: acceleration alone, or with rotation"""


class ZoomBenchData(Section):
    """The embedded synthetic benchmark. Its generator has more knobs: `tzoom data make-zoombench --help`."""

    root: ClassVar[None] = None
    annotations: ClassVar[None] = None
    videos: ClassVar[None] = None
    features: ClassVar[None] = None
    prefix: ClassVar[str] = ""
    raw: ClassVar[bool] = False
    missing: ClassVar[str] = "error"
    keypoints: ClassVar[str] = ""
    derivatives: ClassVar[bool] = False
    sensors: ClassVar[str] = ""
    task: ClassVar[None] = None
    resize: ClassVar[None] = None
    background: ClassVar[tuple[str, ...]] = ()
    clip: ClassVar[bool] = False
    test_recordings: ClassVar[tuple[str, ...]] = ()
    soft_labels: ClassVar[None] = None
    leave_out: ClassVar[None] = None
    validation_fold: ClassVar[None] = None
    folds: ClassVar[None] = None
    fold: ClassVar[int] = 0
    class_agnostic: ClassVar[bool] = False
    fps: ClassVar[None] = None
    window: ClassVar[None] = None
    train_subset: ClassVar[str] = "train"
    test_subset: ClassVar[str] = "test"

    source: Literal["zoombench"]
    stride: Positive | None = None
    seed: FromZero | None = None
    """of `zoombench`: what the sequences are drawn from; null: the seed of the training"""
    sequences: Length = 96
    """of `zoombench`: training sequences"""
    test_sequences: Length = 48
    """of `zoombench`: test sequences"""
    length: Length = 512
    """of `zoombench`: positions per sequence; with another `data.stride`, as many as there are in the same time"""
    validation: bool = False
    """of `zoombench`, for tuning: other sequences play the test, and the real test sequences stay unseen"""


class ZoomBenchContextData(ZoomBenchData):
    """Its variant whose boundaries depend on what is far from them. `tzoom data make-zoombench-context --help`."""

    source: Literal["zoombench_context"]  # type: ignore[assignment]
    between: Annotated[int, Field(ge=0, le=100)] = 4
    """of `zoombench_context`: at most so many phases stand between an action and each phase that decides about it"""
    aborted: Share = 0.35
    """of `zoombench_context`: share of the attempts that are given up or go wrong, and are no instance"""
    interrupted: Share = 0.3
    """of `zoombench_context`: share of the actions with a rest or a foreign phase inside"""
    stray: BelowOne = 0.15
    """of `zoombench_context`: share of the phases that belong to no attempt"""


DEFAULT = "folder"
SECTIONS: dict[str, type[FolderData] | type[VideoSetData] | type[InertialData] | type[ZoomBenchData]] = {
    "folder": FolderData,
    "zoombench": ZoomBenchData,
    "zoombench_context": ZoomBenchContextData,
    "sbhar": InertialData,
    "tug": InertialData,
    "thumos14": VideoSetData,
    "activitynet": VideoSetData,
    "fineaction": VideoSetData,
    "ego4d_mq": VideoSetData,
    "epic_kitchens": VideoSetData,
}
_TAGS = {
    FolderData: "folder",
    ZoomBenchData: "zoombench",
    ZoomBenchContextData: "context",
    InertialData: "inertial",
    VideoSetData: "videos",
}


def kind_of(value: Any) -> str | None:
    """Which class of section the settings (or the loaded section) belong to."""
    source = value.get("source", DEFAULT) if isinstance(value, dict) else getattr(value, "source", None)
    section = SECTIONS.get(source) if isinstance(source, str) else None
    return None if section is None else _TAGS[section]


DataConfig = Annotated[
    Annotated[FolderData, Tag("folder")]
    | Annotated[VideoSetData, Tag("videos")]
    | Annotated[InertialData, Tag("inertial")]
    | Annotated[ZoomBenchData, Tag("zoombench")]
    | Annotated[ZoomBenchContextData, Tag("context")],
    Discriminator(kind_of),
]


def companions(data: Any) -> Tree:
    """Settings of other sections that a `data` section, as a mapping, makes the default; a user may change them."""
    if not isinstance(data, dict):
        return {}
    if kind_of(data) == "inertial":
        return INERTIAL_COMPANIONS
    protocol = PROTOCOL_COMPANIONS if kind_of(data) == "videos" else {}
    if data.get("videos") is not None and data.get("features") is None:
        return VIDEO_COMPANIONS | protocol
    if protocol:
        return protocol
    return RAW_COMPANIONS if data.get("raw") is True else {}
