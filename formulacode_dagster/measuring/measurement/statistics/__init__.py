"""Statistics of a task's samples: tests, intervals and the verdict. Pure: nothing here runs or stores anything."""
