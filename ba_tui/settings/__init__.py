"""Settings: their models, layers, sources, keys and how one is changed. May import core and resources only."""

from ba_tui.settings.document import Problem, SettingsDocument, printable, read_document
from ba_tui.settings.editing import add_item, remove_item, set_value
from ba_tui.settings.keys import Key, read_key, save_key, sound_key
from ba_tui.settings.layers import HookLine, LoadedSettings, as_data, leaves, load_settings, setting_files
from ba_tui.settings.model import Settings
from ba_tui.settings.sections.models import CompressionSettings, LocalSettings, ModelProfile
from ba_tui.settings.sections.tools import HOOK_EVENTS, HookGroup, HookSetting, RuleSettings

__all__ = [
    "HOOK_EVENTS",
    "CompressionSettings",
    "HookGroup",
    "HookLine",
    "HookSetting",
    "Key",
    "LoadedSettings",
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
