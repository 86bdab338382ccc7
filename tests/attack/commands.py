"""What is attacked: every command, each with wrong files and wrong options made for it."""

from __future__ import annotations

import commands_on_data as data
import commands_on_models as models
from command_line import rule
from fuzzing import Target

COMMANDS = (
    Target("tzoom data import", data.data_import, rule, 3),
    Target("tzoom data check", data.data_check, rule, 1),
    Target("tzoom data make-zoombench", data.make_zoombench, rule, 0.5),
    Target("tzoom data make-zoombench-context", data.make_zoombench_context, rule, 0.5),
    Target("tzoom data make-zoombench-video", data.make_zoombench_video, rule, 0.3),
    Target("tzoom fit", data.fit, rule, 0.7),
    Target("tzoom extract", data.extract, rule, 0.3),
    Target("tzoom cuts", data.cuts, rule, 0.3),
    Target("tzoom train", models.train, rule, 1),
    Target("tzoom eval", models.evaluate, rule, 2),
    Target("tzoom eval --model", models.evaluate_model, rule, 0.5),
    Target("tzoom eval --report", models.report, rule, 0.7),
    Target("tzoom localize", models.localize, rule, 2),
    Target("tzoom clips", data.clips, rule, 0.5),
    Target("tzoom budget", data.budget, rule, 2),
    Target("tzoom export", models.export, rule, 0.3),
    Target("tzoom recipes", data.recipes, rule, 1),
    Target("tzoom settings", data.settings, rule, 1),
    Target("tzoom sweep", models.sweep, rule, 0.5),
    Target("tzoom bench", models.bench, rule, 0.5),
    Target("tzoom cost", models.cost, rule, 0.5),
    Target("tzoom distill", models.distill, rule, 0.3),
    Target("tzoom demo", models.demo, rule, 0.3),
)
