select * from {{ landed_since_last_run('deliveries') }}
