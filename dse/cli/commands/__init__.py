"""The sub-commands, one module each, named after the command and holding it as ``command``."""
