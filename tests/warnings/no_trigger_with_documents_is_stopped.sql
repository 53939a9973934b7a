-- What waits for a trigger that takes nothing is processed by nobody.
{{ nothing_to_do('STOPPED') }}
