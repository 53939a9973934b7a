-- A copy that comes after the time to live is processed again.
{{ nothing_to_do('TIME_TO_LIVE') }}
