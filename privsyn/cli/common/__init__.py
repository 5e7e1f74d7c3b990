"""What the commands share: options, outputs, and the one way to the screen."""
