"""Plans and workflows: plan mode, the planner, and steps that wait for each other."""

from ba_tui.feature import Feature

PLANS = Feature("plans", "ba_tui.features.plans.session:open_plans")
