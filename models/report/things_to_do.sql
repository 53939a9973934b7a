with

not_looked_at as (

    select
        'DOUBTS' as kind,
        trigger_name,
        count(*) as documents,
        'documents in doubt that nobody has looked at' as what,
        concat(
            'look at them, resubmit what was not processed, then ',
            {{ operation_command('mark_looked_at', {'trigger_name': 'trigger_name'}) | indent(12) }}
        ) as what_to_do,
        'select * from {{ ref("in_doubt_documents") }} where looked_at is null' as rows_behind
    from {{ ref('in_doubt_documents') }}
    where looked_at is null
    group by trigger_name

),

-- only triggers whose time to live is too short for some of the copies that have come
short_windows as (

    select
        'TIME_TO_LIVE' as kind,
        late.trigger_name,
        count(*) as documents,
        'copies that came after the time to live, and so were processed again' as what,
        max(lags.history_time_to_live_advice) as what_to_do,
        'select * from {{ ref("late_duplicates") }} where kind = \'AFTER_EXPIRY\'' as rows_behind
    from {{ ref('late_duplicates') }} as late
    inner join {{ ref('redelivery_lags') }} as lags on late.trigger_name = lags.trigger_name
    where late.kind = 'AFTER_EXPIRY' and lags.uses_history and lags.copies_in_time < lags.copies
    group by late.trigger_name

),

uncounted as (

    select
        'COUNT' as kind,
        statuses.trigger_name,
        count(*) as documents,
        'documents taken for NEW because their deliveries came without a count' as what,
        'use_history: true in seeds/triggers.csv, or a resolver' as what_to_do,
        'select * from {{ ref("decided_deliveries") }} '
        || 'where decided_by = \'COUNT\' and redelivery = \'UNDEFINED\'' as rows_behind
    from {{ ref('decided_deliveries') }} as statuses
    inner join {{ ref('trigger_settings') }} as settings
        on statuses.trigger_name = settings.trigger_name
    where
        statuses.decided_by = 'COUNT'
        and statuses.redelivery = 'UNDEFINED'
        -- as long as the trigger has no other method
        and settings.detect_duplicates
        and not settings.use_history
        and settings.resolver is null
    group by statuses.trigger_name

),

stopped as (

    select
        'STOPPED' as kind,
        trigger_name,
        waiting + unfinished as documents,
        'documents that wait or are unfinished, since the trigger is stopped: ' || cause as what,
        what_to_do,
        'select * from (select trigger_name, delivery_id, received_at '
        || 'from {{ ref("waiting_documents") }} union all select trigger_name, delivery_id, '
        || 'received_at from {{ ref("execution_state") }}) where true' as rows_behind
    from {{ ref('stopped_triggers') }}
    -- a disabled trigger with nothing left needs no attention
    where waiting + unfinished > 0 or cause != 'DISABLED'

),

overdue as (

    select
        'OVERDUE' as kind,
        trigger_name,
        count(*) as documents,
        'documents whose service should have started long ago' as what,
        'see that the service runs, and that their landed rows are still there' as what_to_do,
        'select * from {{ ref("execution_state") }} where is_overdue' as rows_behind
    from {{ ref('execution_state') }}
    where is_overdue
    group by trigger_name

),

same_id as (

    select
        'SAME_ID' as kind,
        trigger_name,
        sum(discarded) as documents,
        'duplicates discarded under an id that came with different payloads' as what,
        'ask their sender for ids that differ; only what is in doubt can be resubmitted'
            as what_to_do,
        'select * from {{ ref("keys_with_several_payloads") }} where discarded > 0' as rows_behind
    from {{ ref('keys_with_several_payloads') }}
    where discarded > 0
    group by trigger_name

),

unsent as (

    select
        'UNSENT_ERRORS' as kind,
        trigger_name,
        count(*) as documents,
        'error documents that were not sent to where their publishers want them' as what,
        'exactly-once send-errors' as what_to_do,
        'select * from {{ ref("error_documents") }} where sent_at is null and errors_to != \'\''
        || ' and failed_at < current_timestamp() - interval 1 hour' as rows_behind
    from {{ ref('error_documents') }}
    where
        errors_to != ''
        and sent_at is null
        and failed_at < {{ present_time() }} - interval 1 hour
    group by trigger_name

),

without_row as (

    select
        'LANDED_ROW_GONE' as kind,
        trigger_name,
        count(*) as documents,
        'documents that wait and whose landed rows were removed' as what,
        'land the rows again, with the delivery_id and received_at they had' as what_to_do,
        'select * from {{ ref("waiting_documents") }} where reason = \'LANDED_ROW_GONE\''
            as rows_behind
    from {{ ref('waiting_documents') }}
    where reason = 'LANDED_ROW_GONE'
    group by trigger_name

),

rejected as (

    select
        'REJECTED' as kind,
        cast(null as string) as trigger_name,
        count(*) as documents,
        concat('rows for ', table_name, ' that were rejected and have not come in since') as what,
        concat(
            'land them again, corrected, ',
            if(table_name = 'deliveries', 'or resubmit them, ', ''),
            'then dbt run-operation mark_looked_at'
        ) as what_to_do,
        concat(
            'select * from {{ ref("rejections") }} where looked_at is null ',
            'and table_name = \'', table_name, '\''
        ) as rows_behind
    from {{ ref('rejections') }}
    where looked_at is null
    group by table_name

),

found as (

    select * from not_looked_at
    union all
    select * from short_windows
    union all
    select * from uncounted
    union all
    select * from stopped
    union all
    select * from overdue
    union all
    select * from same_id
    union all
    select * from unsent
    union all
    select * from without_row
    union all
    select * from rejected

),

final as (

    select
        * except (rows_behind),
        rows_behind
        || coalesce(' and trigger_name = ' || {{ as_literal('trigger_name') }}, '') as rows_behind
    from found

)

select * from final
