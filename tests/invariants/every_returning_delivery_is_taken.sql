{%- do no_rows_where(is_empty(ref('returning_this_run'))) -%}
-- What waited, was interrupted or was resubmitted is in the queue of the run, with its landed row
-- or without: what the queue left out would be neither decided nor waiting.
{%- set run = checked_run(ref('trigger_queue')) %}
select
    returning_this_run.delivery_id,
    returning_this_run.trigger_name
from {{ ref('returning_this_run') }} as returning_this_run
left anti join {{ ref('trigger_queue') }} as trigger_queue
    on
        returning_this_run.delivery_id = trigger_queue.delivery_id
        and returning_this_run.trigger_name = trigger_queue.trigger_name
        and trigger_queue.for_run_id = {{ run }}
where returning_this_run.for_run_id = {{ run }}
