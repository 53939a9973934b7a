select * except (landed_file, landed_position)
from {{ landed_before('rejected_landings', until='unconsumed') }}
