from ba_tui.tools.decorator import tool as tool

__version__: str
