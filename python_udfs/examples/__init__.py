"""Resolvers to copy: a look into a database, the same for many deliveries at once, and for JMS."""
