"""`tzoom export`: a trained model as an ONNX file. No file is written that has not been compared with its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor, nn

from temporalzoom.errors import InputError
from temporalzoom.inference import onnx_forms
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.onnx_forms import UniformForm, ZoomForm
from temporalzoom.inference.onnx_network import DEPTH_NAMES, RAW_NAMES, Agreement, OnnxDescription, save_network
from temporalzoom.models.tzn import TemporalZoom
from temporalzoom.models.uniform import Uniform
from temporalzoom.runs.checkpoint import find_checkpoint, read_info

LENGTHS = (1, 37, 700)  # at which a file is compared with its model


def export_onnx(run: str | Path, out: str | Path, budget: float | None = None) -> tuple[OnnxDescription, Agreement]:
    """Write the model of a run folder as an ONNX file that `Localizer.load` takes. budget: as there."""
    config = read_info(find_checkpoint(Path(run))).config
    localizer = Localizer.load(run, budget)
    if localizer.oracle_reach is not None:
        raise InputError(f"{run}: tzn.protection=oracle needs the truth wherever it runs; such a model stays here")
    assert localizer.input_width is not None
    options = localizer.options.model_copy(update={"video_scores": None})  # a file that stays here
    described = OnnxDescription(config.model.name, localizer.classes, localizer.grid, options, localizer.input_width)
    return save_onnx(localizer.model, described.prepared_like(localizer), out)


def save_onnx(
    model: nn.Module, described: OnnxDescription, out: str | Path, lengths: Sequence[int] = LENGTHS, repeats: int = 10
) -> tuple[OnnxDescription, Agreement]:
    """Write `model`; see `save_network`. Returns the description completed with what the network itself tells."""
    form, names = _form_of(model.eval(), described.model)
    described = replace(
        described,
        levels=form.model.heads.levels,
        receptive_field=getattr(model, "receptive_field", None),
        longest=2**onnx_forms.DOUBLINGS if isinstance(form, ZoomForm) else None,
        gating="kept: only active positions run through the deep layers" if isinstance(form, ZoomForm) else "none",
        version=metadata.version("temporalzoom"),
    )
    standard, random = form.model.projection.standard, torch.Generator().manual_seed(0)

    def make_features(length: int) -> Tensor:
        features = torch.randn(1, length, described.input_width, generator=random)
        return features if standard is None else features / standard.factor + standard.mean

    return described, save_network(model, form, names, described, out, make_features, lengths, repeats)


def _form_of(model: nn.Module, name: str) -> tuple[UniformForm | ZoomForm, tuple[str, ...]]:
    """What is exported in the place of `model`, and the names of its outputs."""
    if not isinstance(model, Uniform | TemporalZoom):
        raise InputError(f"model.name: {name} cannot be exported; uniform-N and tzn can")
    names = RAW_NAMES if model.heads.distance is not None else RAW_NAMES[:3]
    return (UniformForm(model), names) if isinstance(model, Uniform) else (ZoomForm(model), names + DEPTH_NAMES)
