"""The configuration: a typed tree, YAML in, `key=value` overrides, errors that name the key and what is near it."""

from temporalzoom.config.base import Device, Precision
from temporalzoom.config.data import (
    DataConfig,
    FolderData,
    InertialData,
    VideoSetData,
    ZoomBenchContextData,
    ZoomBenchData,
)
from temporalzoom.config.loading import (
    change_inference,
    changed,
    dump_config,
    dump_tree,
    load_config,
    parse_config,
    parse_value,
)
from temporalzoom.config.networks import (
    BMNSection,
    EncoderSection,
    ModelConfig,
    UniformSection,
    ZoomSection,
    adaptive_depth,
)
from temporalzoom.config.per_class import PerClass, check_class_names
from temporalzoom.config.recipes import recipe_names, recipe_summary, recipe_text
from temporalzoom.config.sections import (
    AugmentConfig,
    BackboneConfig,
    BDRConfig,
    Config,
    EvaluationConfig,
    FrameAugmentConfig,
    InferenceConfig,
    TrainingConfig,
    config_fields,
    first_difference,
)
from temporalzoom.config.unread import unread_keys
from temporalzoom.config.yaml_text import parse_yaml

__all__ = [
    "AugmentConfig",
    "BDRConfig",
    "BMNSection",
    "BackboneConfig",
    "Config",
    "DataConfig",
    "Device",
    "EncoderSection",
    "EvaluationConfig",
    "FolderData",
    "FrameAugmentConfig",
    "InertialData",
    "InferenceConfig",
    "ModelConfig",
    "PerClass",
    "Precision",
    "TrainingConfig",
    "UniformSection",
    "VideoSetData",
    "ZoomBenchContextData",
    "ZoomBenchData",
    "ZoomSection",
    "adaptive_depth",
    "change_inference",
    "changed",
    "check_class_names",
    "config_fields",
    "dump_config",
    "dump_tree",
    "first_difference",
    "load_config",
    "parse_config",
    "parse_value",
    "parse_yaml",
    "recipe_names",
    "recipe_summary",
    "recipe_text",
    "unread_keys",
]
