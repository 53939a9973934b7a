-- What was rejected is processed by nobody until it lands again.
{{ nothing_to_do('REJECTED') }}
