"""The methods as published, each as its publication says; the preset `as-published` chooses them."""
