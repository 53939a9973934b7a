{{ first_landed('trigger_commands', 'command_id') }}
