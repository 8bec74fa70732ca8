"""A page about one class's kernel: HTML and SVG that need nothing from outside, made of what the store holds."""
