"""What goes with the prompts of one session: files that they mention, what their commands stand for, what hooks add."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.assembly.session_tools import GuardedTools
from ba_tui.context.admission import Admission
from ba_tui.context.attaching import Attaching
from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.context.attachments import Attachments
from ba_tui.context.commands import CommandFiles
from ba_tui.context.files import FileIndex
from ba_tui.context.mention_sources import OtherSessions, mention_sources
from ba_tui.context.mentions import MentionSource, Offering
from ba_tui.context.own_commands import CommandContext, CommandExpander, ServerPrompts
from ba_tui.context.session_data import MentionedData
from ba_tui.context.surroundings import Surroundings
from ba_tui.context.touched import TouchedFiles
from ba_tui.core.messages import Message
from ba_tui.core.ports.mentions import MentionKind
from ba_tui.core.services import Library
from ba_tui.core.values import frozen
from ba_tui.permissions.rules.granted import GrantedRules, grantable
from ba_tui.permissions.session import SessionPermissions
from ba_tui.settings.allowed_tools import rules_of
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.listing import SkillList
from ba_tui.tools.builtin.images import kept_picture
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.guards.secrets import secrets
from ba_tui.tools.mentioned_files import MentionedFiles, shortened_session

if TYPE_CHECKING:
    from ba_tui.hooks.turns import HookTurns


@frozen
class PromptSources:
    """``folder`` of the session, where files from elsewhere are copied to; ``commands``: the person's own; ``missing``:
    why a model can't be asked; ``tokens`` counts, ``window`` is how many the model can read, ``show`` lists tools;
    ``touched``: the files that the conversation was about."""

    library: Library
    folder: Path
    commands: CommandFiles
    missing: Callable[[str], str]
    tokens: Callable[[Sequence[Message]], int]
    window: Callable[[], int]
    show: Callable[[Sequence[str]], None]
    touched: TouchedFiles


class SessionPrompts:
    """``admission`` decides about a prompt, ``attaching`` brings what it mentions; ``commands`` and ``mentions`` are
    what a face offers while one is typed."""

    def __init__(
        self,
        sources: PromptSources,
        tools: GuardedTools,
        permissions: SessionPermissions,
        active: ActiveSkills,
        hooks: HookTurns | None,
    ) -> None:
        workspace, policy, registry = permissions.workspace, permissions.policy, tools.registry
        clean, self.skills = active.catalog.ingress.clean, SkillList(active)
        data = tools.offered(MentionedData)
        files = MentionedFiles(workspace, tools.readers, policy.judge, secrets(permissions.sharing))
        sessions = OtherSessions(sources.library, sources.folder.name, shortened_session)
        index = FileIndex(workspace.root, find_ripgrep())
        attached = files.attached(sources.folder / ATTACHED)
        attachments = Attachments(
            Surroundings(
                attached,
                files.clean,
                sources.tokens,
                sources.window,
                self.skills,
                registry.names,
                sources.show,
                sessions.read,
                index.nearest,
                data,
            )
        )
        self.attaching = Attaching(attachments, sources.touched)

        def rules(named: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
            return grantable(rules_of(named), registry.names())

        context = CommandContext(
            tools.shell,
            self.skills,
            sources.missing,
            active.confirmed,
            permissions.confirms,
            rules,
            clean,
            tools.port(ServerPrompts),
        )
        self.commands = CommandExpander(sources.commands, context)
        policy.grant(GrantedRules(self.commands.granted, "a command"))
        self.admission = Admission(self.commands, hooks.admit if hooks else None, self.attaching)
        keep = partial(kept_picture, sources.folder / ATTACHED)
        offered: dict[MentionKind, MentionSource] = {
            kind: source for feature in tools.features for kind, source in feature.mentions.items()
        }
        names = mention_sources(self.skills, lambda: registry.tools().values(), sessions, offered)

        def refresh() -> None:
            for feature in tools.features:
                if feature.refresh:
                    feature.refresh()

        self.mentions = Offering(index, names, attachments.weigh, keep, refresh)
