"""Teams of agents: roles, leads and members."""

from ba_tui.feature import Feature

TEAMS = Feature("teams", "ba_tui.features.teams.session:open_teams")
