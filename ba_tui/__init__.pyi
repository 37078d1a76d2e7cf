from ba_tui.tools.own.decorator import tool as tool

__version__: str
