"""The configuration: a typed tree, YAML in, `key=value` overrides, errors that name the key and what is near it."""

from temporalzoom.config.loading import change_inference, dump_config, load_config, parse_config
from temporalzoom.config.sections import (
    AugmentConfig,
    BDRConfig,
    Config,
    DataConfig,
    EvaluationConfig,
    InferenceConfig,
    ModelConfig,
    Precision,
    TrainingConfig,
    TZNConfig,
    ZoomBenchConfig,
    config_fields,
    first_difference,
)

__all__ = [
    "AugmentConfig",
    "BDRConfig",
    "Config",
    "DataConfig",
    "EvaluationConfig",
    "InferenceConfig",
    "ModelConfig",
    "Precision",
    "TZNConfig",
    "TrainingConfig",
    "ZoomBenchConfig",
    "change_inference",
    "config_fields",
    "dump_config",
    "first_difference",
    "load_config",
    "parse_config",
]
