"""``tf.test`` for tests of programs: test cases with sessions, assertions, checks of gradients."""
