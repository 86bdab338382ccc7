"""One table of the paper = one file here: what it trains, what it measures, how it reads. Its name is the file's."""
