-- What waits for a landed row that was removed is processed by nobody.
{{ nothing_to_do('LANDED_ROW_GONE') }}
