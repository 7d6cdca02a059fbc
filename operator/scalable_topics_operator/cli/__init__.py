"""`stopics`, the command line: asks the gateway and shows what it answers."""
