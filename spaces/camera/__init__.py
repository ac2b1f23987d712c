"""An object detector on a surveillance camera: model, number format, engine and hardware together."""
