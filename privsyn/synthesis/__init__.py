"""From consistent tables to records."""
