"""``ba plan``: plans of sessions, made and carried out without the app. May import what ``cli`` may."""
