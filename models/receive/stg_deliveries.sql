select
    *,
    _file as landed_file,
    _pos as landed_position
from {{ landed_since_last_run('deliveries') }}
