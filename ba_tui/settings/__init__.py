"""Settings: their models, layers, sources, keys and how one is changed. May import core and resources only."""

from ba_tui.settings.document import Problem, SettingsDocument, printable, read_document
from ba_tui.settings.editing import add_item, remove_item, set_value
from ba_tui.settings.keys import Key, read_key, save_key, sound_key
from ba_tui.settings.layers import HookLine, Loaded, as_data, leaves, load_settings, setting_files
from ba_tui.settings.model import Settings
from ba_tui.settings.sections.context import CompressionSettings
from ba_tui.settings.sections.hooks import HOOK_EVENTS, HookGroup, HookSetting
from ba_tui.settings.sections.local import LocalSettings
from ba_tui.settings.sections.permissions import RuleSettings
from ba_tui.settings.sections.providers import ModelProfile

__all__ = [
    "HOOK_EVENTS",
    "CompressionSettings",
    "HookGroup",
    "HookLine",
    "HookSetting",
    "Key",
    "Loaded",
    "LocalSettings",
    "ModelProfile",
    "Problem",
    "RuleSettings",
    "Settings",
    "SettingsDocument",
    "add_item",
    "as_data",
    "leaves",
    "load_settings",
    "printable",
    "read_document",
    "read_key",
    "remove_item",
    "save_key",
    "set_value",
    "setting_files",
    "sound_key",
]
