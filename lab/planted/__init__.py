"""Plants bugs in the code, one at a time, and says which of them the test suite catches."""
