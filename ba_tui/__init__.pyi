from ba_tui.tools.declared_tools import tool as tool

__version__: str
