"""Resolvers to copy: one asks a database, one asks for many deliveries at once, one is for JMS."""
