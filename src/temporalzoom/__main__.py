"""`python -m temporalzoom` is `tzoom`."""

from temporalzoom.cli import main

if __name__ == "__main__":
    main()
