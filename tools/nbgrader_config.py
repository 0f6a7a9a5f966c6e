# nbgrader reads this file as the settings of a course; `make nbgrader` puts it there. c is its configuration.

# Students get the stubs as they are. ClearSolutions would write "raise NotImplementedError()" over them, and with that
# over what the exercise says there.
c.ClearSolutions.enabled = False  # noqa: F821
# A student who deletes a check gets it back before the answer is graded.
c.OverwriteCells.add_missing_cells = True  # noqa: F821
# Seconds for a cell, 30 by default: some cells train.
c.Execute.timeout = 300  # noqa: F821
