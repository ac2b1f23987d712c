"""Space files: YAML read into a checked declaration."""
