"""Can a model use what a server offers? One declared value for each code; pure throughout."""
