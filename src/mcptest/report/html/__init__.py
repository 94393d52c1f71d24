"""The HTML report: one file that needs no network, and in which nothing of a peer can run.

Stored runs become entries and facts (`of_*`), captures become rows (`wire_rows`), both are embedded
as data (`embedded`), and `page` puts them beside a script that only ever makes text of them.
"""
