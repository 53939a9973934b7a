{{ first_landed('trigger_executions', 'execution_id') }}
