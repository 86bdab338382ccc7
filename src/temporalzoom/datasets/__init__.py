"""Annotations and features: reading, checking, describing, and making samples of them."""
