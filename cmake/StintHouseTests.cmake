# Tests of the house itself: its rules, its documents, its installed tree.
