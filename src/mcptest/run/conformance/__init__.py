"""The scenario suite: clients and servers are driven, and what came is judged."""
