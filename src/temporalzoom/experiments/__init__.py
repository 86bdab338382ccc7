"""Tables of the paper: one small module of `tables` each, which only uses public names of the other rooms."""
