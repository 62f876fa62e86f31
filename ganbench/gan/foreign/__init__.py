"""Code that ganbench has never seen: files and packages of others, loaded without being changed."""
