"""What ``tf.test`` offers to people's own tests: test cases with sessions, assertions, checks of gradients."""
