select * from {{ landed_since_last_run('rejected_landings') }}
