"""``ba plan``: makes, executes, lists and exports plans without the app. May import what ``cli`` may."""
