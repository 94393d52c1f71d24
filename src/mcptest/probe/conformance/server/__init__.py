"""Scenarios for servers: what is asked on a stage, and checks over the scene that was heard.

One module for each subject; `server_suite` runs them over as few connections as can be.
"""
