"""A paper table, a figure or the demo = one small module that uses only the public names of the other rooms."""
