-- depends_on: {{ ref('published_runs') }}
-- What the last published run or one before it has consumed is decided, waits, was left out with a
-- journal entry, or was rejected: nothing that landed is lost.
{%- set consumed = run_query(
    "select landed_snapshots['deliveries'] from " ~ ref('published_runs')
    ~ ' order by run_number desc limit 1'
).rows if execute and flags.WHICH in ['build', 'test'] else [] %}
with

landed as (

    select
        delivery_id,
        received_at
    from {{ source('landing', 'deliveries') }}
    {{ 'version as of ' ~ consumed[0][0] if consumed and consumed[0][0] else 'where false' }}

),

explained as (

    select {{ landed_delivery_id('delivery_id') }} as delivery_id
    from {{ ref('document_status') }}
    union all
    select landed_delivery_id as delivery_id
    from {{ ref('waiting_deliveries') }}
    union all
    select delivery_id
    from {{ ref('journal_entries') }}
    where event in ('UNROUTED', 'UNKNOWN_DESTINATION', 'NOT_TAKEN')
    union all
    select delivery_id
    from {{ ref('rejected_deliveries') }}
    -- that one is a copy of a row which has landed before
    where reason != 'REPEATED'

),

-- retention forgets statuses and journal entries of what was received before the last run that it
-- followed
forgotten as (

    select max(event_time) as forgotten_at
    from {{ ref('published_runs') }}
    where kind = 'run' and run_number <= {{ forgotten_until(only_statuses=false) }}

)

select landed.delivery_id
from landed
cross join forgotten
left anti join explained on landed.delivery_id = explained.delivery_id
where
    -- a rejection of a row without an id names its file and position
    landed.delivery_id is not null
    and not coalesce(landed.received_at <= forgotten.forgotten_at, false)
