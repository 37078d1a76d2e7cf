from ba_tui.tools.declared import tool as tool

__version__: str
