-- A second document under an id that is in use is discarded as a duplicate.
{{ nothing_to_do('SAME_ID') }}
