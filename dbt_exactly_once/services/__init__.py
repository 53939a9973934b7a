"""What processes documents: worker, services that are models, executions, effects, errors."""
