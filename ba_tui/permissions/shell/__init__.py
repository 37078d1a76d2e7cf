"""Shell commands: read as bash reads them, taken apart, judged. May import what permissions may.

On its way a command takes four shapes, each a value of its own because it knows more than the one before:

1. the text, as the model wrote it;
2. the tree (``tree.CommandList`` down to ``tree.Command``, words as ``tokens.Token``): what bash would parse, nothing
   expanded. Made by ``parser``, checked against a second grammar by ``witness``;
3. the analysis (``walk.values.Analysis`` of ``Simple`` commands with ``ShellWord``): the simple commands that would
   run, with variables, folders and wrappers followed. No file was looked at. Made by ``walk.walker``;
4. the parts (``command_parts.CommandPart``): each simple command with the paths that it touches on this disk, and what
   is more than reading. Made by ``judgement``; rules, profiles and questions see nothing else of a command.

"Command" alone means the text in arguments of tools and rules (1), and ``tree.Command`` inside of this package (2).
``judging`` is no shape: it gathers the functions above for one late import.
"""
