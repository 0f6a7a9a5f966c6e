"""What a lecturer examines with: an exam, a test before and after a course, both for Moodle; `make test-assess`."""
