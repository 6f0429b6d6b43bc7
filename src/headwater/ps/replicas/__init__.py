"""A second copy of what each ``ps`` holds, which serves when the first is lost."""
