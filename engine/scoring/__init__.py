"""How well the engine answers where the truth is known."""
