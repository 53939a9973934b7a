{{ config(materialized='ephemeral') }}
{%- set facts = queue_facts() -%}
{%- set sources = [ref('routed_deliveries')] -%}
{%- if facts.takes_earlier -%}
    {%- do sources.append(ref('deliveries_taken_late')) -%}
{%- endif -%}
{%- if facts.returning_days != [] -%}
    {%- do sources.append(ref('returned_deliveries')) -%}
{%- endif %}
{% for arrivals in sources -%}
    select
        delivery_id,
        trigger_name,
        landed_delivery_id,
        landed_received_at,
        received_at,
        landed_at,
        transport,
        document_type,
        destination,
        guaranteed,
        uuid,
        track_id,
        event_id,
        redelivery_count,
        errors_to,
        document,
        origin,
        recoveries,
        resubmission_id,
        examined,
        waiting_since,
        had_waited,
        awaited_key_hash,
        decided_key,
        landed_file,
        landed_position,
        left_out,
        rejected_because,
        is_gone
    from {{ arrivals }}
    {{ 'union all' if not loop.last }}
{% endfor %}
