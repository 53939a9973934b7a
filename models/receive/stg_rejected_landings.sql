select * except (landed_file, landed_position)
from {{ landed_since_last_run('rejected_landings') }}
