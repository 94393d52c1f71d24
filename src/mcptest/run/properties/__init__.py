"""Property tests of a live server: examples are played, judged by the rules, and made small."""
