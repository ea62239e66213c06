"""What samples of a task say: chance, intervals and the verdict. Pure: nothing here runs or stores anything."""
