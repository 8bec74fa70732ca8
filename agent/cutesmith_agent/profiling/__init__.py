"""What limits a kernel, and what to change first. Pure: counts and measurements in, words and lines out."""
