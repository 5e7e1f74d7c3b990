"""The distinguishing game and the reconstruction attack: what an attacker learns, beside what is claimed."""
