select * from {{ landed_before('deliveries', until='unconsumed') }}
