"""Teams of agents: roles, leads and members."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

TEAMS = Feature(
    "teams",
    "ba_tui.features.teams.session:open_teams",
    app=AppParts(
        commands=(
            Command(
                "team",
                "View the team, or start one on a goal",
                "ba_tui.features.teams.tui.screen:team",
                "[--roles A,B] [GOAL]",
                choices=(
                    ("pause", "Pause the team after its running requests"),
                    ("continue", "Let the paused team continue"),
                    ("resume", "Go on with a team that was interrupted"),
                ),
                cli="ba_tui.features.teams.cli.application:app",
                help="Have a team of agents work on a goal; list the roles.",
            ),
            Command(
                "worker",
                cli="ba_tui.features.teams.cli.worker:worker",
                help="Do a team's work of one role, on this machine: pull tasks from the team's Redis server and "
                "answer them.",
            ),
        ),
    ),
)
