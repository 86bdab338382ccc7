"""A trained model on disk: its description, its weights, and how a network is built from them."""
