"""`tzoom export`: a trained model as an ONNX file. No file is written that has not been compared with its model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import torch
from torch import Tensor, nn

from temporalzoom.config import check_class_names
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.onnx_forms import ExportedForm
from temporalzoom.inference.onnx_network import Agreement, save_network
from temporalzoom.runs.description import ExportedGraph, ModelDescription
from temporalzoom.runs.members import read_members, single

LENGTHS = (1, 37, 700)  # at which a file is compared with its model


def export_onnx(run: str | Path, out: str | Path, budget: float | None = None) -> tuple[ModelDescription, Agreement]:
    """Write the model of a run folder as an ONNX file that `Localizer.load` takes. budget: as there."""
    localizer = Localizer.load(single(Path(run)), budget, device="cpu")  # one of several networks has to be named
    described = localizer.description
    if described.oracle_reach is not None:
        raise InputError(
            f"{run}: model.paper.protection=oracle (or allocation=oracle) needs the truth wherever it runs; such a "
            "model stays here"
        )
    # What names files of this computer stays here too.
    options = localizer.options.model_copy(update={"video_scores": None})
    members = read_members(Path(run))
    if members is not None and members.thresholds:  # those of `tzoom fit`, which are not the member's
        options = options.model_copy(update={"threshold": dict(members.thresholds)})
        check_class_names(options.per_class, described.classes)
    return save_onnx(localizer.model, replace(described, inference=options, training=None), out)


def save_onnx(
    model: nn.Module, described: ModelDescription, out: str | Path, lengths: Sequence[int] = LENGTHS, repeats: int = 10
) -> tuple[ModelDescription, Agreement]:
    """Write `model`; see `save_network`. Returns the description completed with what the network itself tells."""
    form = ExportedForm(model.eval(), described.model)
    graph = ExportedGraph(
        levels=form.model.heads.levels,
        receptive_field=getattr(model, "receptive_field", None),
        longest=form.longest,
        gating="kept: only active positions run through the deep layers" if form.adaptive else "none",
    )
    described = replace(described, graph=graph, version=metadata.version("temporalzoom"))
    standard, random = form.model.projection.standard, torch.Generator().manual_seed(0)

    def make_features(length: int) -> Tensor:
        features = torch.randn(1, length, described.input_width, generator=random)
        return features if standard is None else features / standard.factor + standard.mean

    return described, save_network(model, form, form.names, described, out, make_features, lengths, repeats)
