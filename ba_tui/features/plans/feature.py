"""Plans and workflows: plan mode, the planner, and steps that wait for each other."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

PLANS = Feature(
    "plans",
    "ba_tui.features.plans.session:open_plans",
    app=AppParts(
        commands=(
            Command(
                "run",
                cli="ba_tui.features.plans.cli.run:run",
                help="Run a workflow: checked as a whole first, then step by step.",
            ),
            Command(
                "plan",
                "Plan a goal and carry it out; alone: plan mode",
                "ba_tui.features.plans.tui.commands:plan",
                "[goal|view|resume|export]",
                cli="ba_tui.features.plans.cli.commands:app",
                help="Plan a goal and carry it out; list, show, export and continue plans.",
            ),
            Command(
                "plan-view", "Open the newest plan", "ba_tui.features.plans.tui.commands:view", keys="f6", slash=False
            ),
            Command(
                "plan-switch",
                "Plan in the side panel: tree or graph",
                "ba_tui.features.plans.tui.commands:switch",
                keys="f8",
                slash=False,
            ),
        ),
        panes=("ba_tui.features.plans.tui.commands:PlanProgress",),
        opened=("ba_tui.features.plans.tui.commands:offer",),
        views={
            "plan": "ba_tui.features.plans.tui.view:PlanPane",
            "plan editor": "ba_tui.features.plans.tui.editor:PlanEditor",
        },
    ),
)
