'''Boundary Distance Regression: signed distance fields whose rising zeros are the boundaries of actions.

Five names retrofit it to any model that has one feature vector per position: `distance_targets`, `DistanceHead`,
`distance_loss`, `extract_boundaries`, `refine_segments`. This folder imports torch and numpy only: copy it whole.
All positions are real-valued grid units (one feature vector = 1).

    import torch
    from torch import nn
    from temporalzoom.bdr import (
        DistanceHead, distance_loss, distance_targets, distance_weights, extract_boundaries, refine_segments)

    class WithDistances(nn.Module):
        """Any encoder (B, T, D) -> (B, T, width), with a distance head beside the heads it already has."""

        def __init__(self, encoder, width):
            super().__init__()
            self.encoder, self.distance = encoder, DistanceHead(width)

        def forward(self, features):
            hidden = self.encoder(features)
            return hidden, self.distance(hidden)        # (B, T, 2): distance to the nearest start, nearest end

    def added_loss(distances, instances, mask):
        """Add this to the model's own loss. instances: per sequence (starts, ends); mask: (B, T), True = valid."""
        length = distances.shape[1]
        target = torch.stack([distance_targets(starts, ends, length) for starts, ends in instances])
        weights = torch.stack([distance_weights(starts, ends, length) for starts, ends in instances])
        return distance_loss(distances, target.to(distances), mask, weights=weights.to(distances))

    def refined(distances, starts, ends):
        """The model's own segments (N,), (N,) of one sequence, moved to the zeros of its fields (T, 2)."""
        return refine_segments(starts, ends, distances[:, 0], distances[:, 1], mode="newton")

    def boundaries(distances):
        """Where actions start and where they end, without any segments: two arrays of positions."""
        return extract_boundaries(distances[:, 0])[0], extract_boundaries(distances[:, 1])[0]
'''

from .classification import extract_peaks, hybrid_field, peak_field
from .extraction import combine_with_probabilities, extract_boundaries, known_stretch
from .head import DistanceHead
from .loss import distance_loss, distance_loss_terms, distance_nll
from .refinement import RefinementMode, assumed_box_variance, newton_path, refine_segments
from .targets import Channels, distance_targets, distance_weights, jump_mask

__all__ = [
    "Channels",
    "DistanceHead",
    "RefinementMode",
    "assumed_box_variance",
    "combine_with_probabilities",
    "distance_loss",
    "distance_loss_terms",
    "distance_nll",
    "distance_targets",
    "distance_weights",
    "extract_boundaries",
    "extract_peaks",
    "hybrid_field",
    "jump_mask",
    "known_stretch",
    "newton_path",
    "peak_field",
    "refine_segments",
]
