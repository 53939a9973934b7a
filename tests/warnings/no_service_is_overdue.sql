-- A document was handed to a service that does not start.
{{ nothing_to_do('OVERDUE') }}
