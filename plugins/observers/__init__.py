"""Built-in observers: switched on by name, ``observers: [tensorboard]``."""
