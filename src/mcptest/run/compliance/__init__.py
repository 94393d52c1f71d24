"""Judging a live server: learn what it has, ask what the corpus asks, judge what came."""
