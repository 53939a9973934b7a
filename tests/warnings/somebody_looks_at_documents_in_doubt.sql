-- A document in doubt is not processed until somebody has looked at it.
{{ nothing_to_do('DOUBTS') }}
