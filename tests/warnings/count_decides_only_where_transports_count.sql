-- Count-only detection takes every copy for NEW that comes without a count.
{{ nothing_to_do('COUNT') }}
