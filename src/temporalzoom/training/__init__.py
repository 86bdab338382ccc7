"""Losses, assignment, the loop, checkpoints."""

from temporalzoom.training.loop import TrainingInterrupted, train

__all__ = ["TrainingInterrupted", "train"]
