"""`python -m ganbench.cli`."""

from ganbench.cli import main

if __name__ == "__main__":
    main()
