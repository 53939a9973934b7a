{{ config(materialized='ephemeral', access='private', contract={'enforced': false}) }}

select
    doubts.delivery_id,
    doubts.trigger_name,
    min(journal.happened_at) as resubmitted_at
from {{ ref('document_statuses') }} as doubts
-- a request names the doubt, or the landed delivery that it came from
inner join {{ ref('journal_entries') }} as journal
    on
        journal.event = 'RESUBMITTED'
        and doubts.trigger_name = journal.trigger_name
        and {{ landed_delivery_id('doubts.delivery_id') }}
        = {{ landed_delivery_id('journal.delivery_id') }}
        and doubts.decided_at <= journal.happened_at
where doubts.status = 'IN_DOUBT'
group by doubts.delivery_id, doubts.trigger_name
