"""The command `tzoom`: parse, call, print. A command registers itself where its file is imported."""

from temporalzoom.cli import bench, data, distill, export, fit, imports, recipes, results, runs, video
from temporalzoom.cli.app import app, main

__all__ = ["app", "bench", "data", "distill", "export", "fit", "imports", "main", "recipes", "results", "runs", "video"]
