"""`uniform-N` and `tzn` as an exporter sees them: features of one sequence in, named tensors out.

The network itself is traced, with its own code: what a graph of fixed operators cannot hold is written there in a form
that it can (see `torch.jit.is_tracing` in `temporalzoom.models`). Only the active positions are gathered and enter the
deep layers: the gating is in the graph.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from temporalzoom.errors import InputError
from temporalzoom.inference.onnx_network import DEPTH_NAMES, RAW_NAMES
from temporalzoom.models import Outputs, depth
from temporalzoom.models.routing import RoutedZoom
from temporalzoom.models.tzn import TemporalZoom
from temporalzoom.models.uniform import Uniform


class ExportedForm(nn.Module):
    """features (1, T, F) -> the tensors called `names`: raw outputs (1, N, ...), then decisions of depth (1, T).

    name: of the model, for errors.
    """

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        if not isinstance(model, Uniform | TemporalZoom):
            raise InputError(f"model.name: {name} cannot be exported; uniform-N and tzn can")
        if isinstance(model, RoutedZoom) or (isinstance(model, TemporalZoom) and model.allocation != "tau"):
            raise InputError("model.paper.allocation: only a network whose depth is predicted (tau) can be exported")
        if model.heads.boundary is not None:
            raise InputError("bdr.loss: only a network that predicts distances alone can be exported")
        self.model = model
        raw = RAW_NAMES if model.heads.distance is not None else RAW_NAMES[:3]
        self.adaptive = isinstance(model, TemporalZoom)
        self.names = (*raw, *DEPTH_NAMES) if self.adaptive else raw

    @property
    def longest(self) -> int | None:
        """The most positions that the graph is right for; None: any number."""
        held = isinstance(self.model, TemporalZoom) and self.model.hysteresis == "hold"
        return 2**depth.DOUBLINGS if held else None

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        outputs = self.model(features, torch.ones_like(features[..., 0], dtype=torch.bool))
        return tuple(named_tensors(outputs)[name] for name in self.names)


def named_tensors(outputs: Outputs) -> dict[str, Tensor]:
    """Of RAW_NAMES and DEPTH_NAMES, those that a network has."""
    found = {name: getattr(outputs, name) for name in RAW_NAMES}
    if outputs.depth is not None:
        found |= {name: getattr(outputs.depth, name.removeprefix("depth_")) for name in DEPTH_NAMES}
    return {name: tensor for name, tensor in found.items() if tensor is not None}
