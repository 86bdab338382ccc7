"""What a user asks for, one file each, read top to bottom: train, evaluate, localize, sweep, export, demo."""
