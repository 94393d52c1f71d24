"""Servers that other people published: installed, judged live, and recorded to be judged again."""
