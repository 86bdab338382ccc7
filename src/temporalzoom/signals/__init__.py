"""Decoding, backbones and feature files: everything that turns a recording into features (T, D)."""
