"""Is this value valid? Answers with reasons; deciding pass or fail is for the rules."""
