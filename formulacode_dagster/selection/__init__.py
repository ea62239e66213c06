"""Selection of candidates: the symbolic filter, the classifier, problem statements and their gates."""
