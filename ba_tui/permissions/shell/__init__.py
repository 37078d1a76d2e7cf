"""Shell commands: parsed as bash parses them, expanded, resolved, judged. It knows no policy.

A command text becomes a judged value in three steps. Each can be tested without the next one:

1. Parse: ``parser`` makes the syntax tree (``tree.CommandList`` down to ``tree.SimpleCommand``). ``witness`` checks it
against a second grammar. Nothing is expanded.
2. Expand: ``walker`` makes ``ExpandedCommand``, each simple command that would run, with variables, working directories
and wrappers such as ``sudo`` followed. No file is read.
3. Resolve: ``judgement`` makes ``ResolvedCommand``, the same with the paths that it touches on this disk and its
effects besides reading. Rules, profiles and questions use only this form.

``permissions.command_judging``, which the first command imports, decides which parts rules cover.
"""
