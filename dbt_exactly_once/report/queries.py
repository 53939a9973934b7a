"""The queries of the page, one for each table or chart; {schema} is where the report views are."""

from __future__ import annotations

QUERIES = {
    "things-to-do": """
        select kind, trigger_name, documents, what, what_to_do, rows_behind
        from {schema}.things_to_do
        order by documents desc, kind, trigger_name
        limit 25
    """,
    "totals": """
        select
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'NEW') as new,
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'NOT_CHECKED') as not_checked,
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'DUPLICATE') as duplicate,
            (select coalesce(sum(deliveries), 0) from {schema}.exactly_once_statistics
                where status = 'IN_DOUBT') as in_doubt,
            (select count(*) from {schema}.in_doubt_documents
                where looked_at is null) as not_looked_at,
            (select count(*) from {schema}.waiting_documents) as waiting
    """,
    "span": """
        select
            cast(timestampdiff(hour, min(received_hour), max(received_hour)) as bigint) as hours
        from {schema}.decisions_over_time
    """,
    "over-time": """
        select
            date_trunc('{unit}', received_hour) as received,
            sum(if(status = 'NEW', deliveries, 0)) as new,
            sum(if(status = 'NOT_CHECKED', deliveries, 0)) as not_checked,
            sum(if(status = 'DUPLICATE', deliveries, 0)) as duplicate,
            sum(if(status = 'IN_DOUBT', deliveries, 0)) as in_doubt
        from {schema}.decisions_over_time
        group by date_trunc('{unit}', received_hour)
        order by received
    """,
    "by-trigger": """
        select
            trigger_name,
            sum(deliveries) as deliveries,
            sum(if(status = 'NEW', deliveries, 0)) as new,
            sum(if(status = 'NOT_CHECKED', deliveries, 0)) as not_checked,
            sum(if(status = 'DUPLICATE', deliveries, 0)) as duplicate,
            sum(if(status = 'IN_DOUBT', deliveries, 0)) as in_doubt
        from {schema}.exactly_once_statistics
        group by trigger_name
        order by in_doubt desc, deliveries desc, trigger_name
        limit 25
    """,
    "doubts": """
        select trigger_name, rule_id, cause, age, documents, not_looked_at, rows_behind
        from {schema}.doubts_by_cause
        order by not_looked_at desc, trigger_name, rule_id, age_rank desc
        limit 25
    """,
    "stopped": """
        select trigger_name, cause, suspended_since, suspended_by, waiting, unfinished, what_to_do
        from {schema}.stopped_triggers
        order by waiting + unfinished desc, trigger_name
        limit 25
    """,
    "waiting": """
        select
            trigger_name,
            reason,
            count(*) as deliveries,
            min(received_at) as oldest_received_at
        from {schema}.waiting_documents
        group by trigger_name, reason
        order by deliveries desc, trigger_name, reason
        limit 25
    """,
    "windows": """
        select
            trigger_name,
            uses_history,
            history_time_to_live_ms,
            copies,
            copies_in_time,
            window_99_ms,
            window_99_9_ms,
            window_100_ms,
            history_time_to_live_advice
        from {schema}.redelivery_lags
        order by copies - copies_in_time desc, copies desc, trigger_name
        limit 25
    """,
    "late": """
        select
            trigger_name,
            count_if(kind = 'BEFORE_EXPIRY') as before_expiry,
            count_if(kind = 'AFTER_EXPIRY') as after_expiry
        from {schema}.late_duplicates
        group by trigger_name
        order by after_expiry desc, before_expiry desc, trigger_name
        limit 25
    """,
    "ids": """
        select
            coalesce(k.trigger_name, p.trigger_name) as trigger_name,
            coalesce(k.keys_with_several_payloads, 0) as keys_with_several_payloads,
            coalesce(k.discarded, 0) as discarded,
            coalesce(p.payloads_with_several_keys, 0) as payloads_with_several_keys,
            coalesce(p.processed, 0) as processed
        from (
            select
                trigger_name,
                count(*) as keys_with_several_payloads,
                sum(discarded) as discarded
            from {schema}.keys_with_several_payloads
            group by trigger_name
        ) as k
        full outer join (
            select
                trigger_name,
                count(*) as payloads_with_several_keys,
                sum(processed) as processed
            from {schema}.payloads_with_several_keys
            group by trigger_name
        ) as p on k.trigger_name = p.trigger_name
        order by discarded desc, trigger_name
        limit 25
    """,
    "runs": """
        select
            run_number,
            started_at,
            seconds_to_publication,
            taken,
            decided,
            waiting,
            unrouted,
            rejected,
            rejected_at_landing,
            decided_in_doubt,
            entries_removed
        from {schema}.run_log
        order by run_number desc
        limit 12
    """,
}
