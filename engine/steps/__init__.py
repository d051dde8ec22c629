"""Jobs and their steps: when they slowed, and which rank or transfer was late."""
