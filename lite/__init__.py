"""The site that runs in the browser: `python -m lite.build_site`."""
