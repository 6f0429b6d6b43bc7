"""What a task tells about itself while it runs."""
