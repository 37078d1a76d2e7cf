from ba_tui.tools.own.declared_tools import tool as tool

__version__: str
