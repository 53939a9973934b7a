{% macro queue_counts(counted=none) -%}
    {#- A relation of the deliveries of this run by what came of them, as note_queue has counted them,
        or counted now. counted: trigger_queue, to count it. -#}
    {%- set run = current_run() -%}
    {%- if run and 'trigger_queue' in run.counts and counted is none -%}
        inline(from_json(
            {{ sql_text(run.counts.trigger_queue) }},
            'array<struct<queue_outcome: string, origin: string, had_waited: boolean,
            deliveries: bigint>>'
        ))
    {%- else -%}
        (
            select
                queue_outcome,
                origin,
                had_waited,
                count(*) as deliveries,
                cast(max(landed_received_at) as string) as latest
            from {{ counted or ref('trigger_queue') }}
            group by queue_outcome, origin, had_waited
        )
    {%- endif -%}
{%- endmacro %}

{% macro decision_counts(counted=none) -%}
    {#- A relation of the documents of this run by what was decided on them, as note_decisions has
        counted them, or counted now. counted: decisions, to count it. -#}
    {%- set run = current_run() -%}
    {%- if run and 'decisions' in run.counts and counted is none -%}
        inline(from_json(
            {{ sql_text(run.counts.decisions) }},
            'array<struct<trigger_name: string, status: string, is_decided: boolean,
            rule_id: string, decided_by: string, key_state: string, redelivery: string,
            documents: bigint>>'
        ))
    {%- else -%}
        (
            select
                trigger_name,
                status,
                is_decided,
                rule_id,
                decided_by,
                key_state,
                redelivery,
                is_opened,
                adds_to_history,
                count(*) as documents
            from (
                select
                    *,
                    {{ is_executed() }} and service is not null as is_opened
                from {{ counted or ref('decisions') }}
            )
            group by
                trigger_name, status, is_decided, rule_id, decided_by, key_state, redelivery,
                is_opened, adds_to_history
        )
    {%- endif -%}
{%- endmacro %}

{% macro note_counts(model_name, counts) -%}
    {#- Keeps such counts for the rest of the run; returns them as a list. counts: a JSON text. -#}
    {%- do current_run().counts.update({model_name: counts}) -%}
    {{ return(fromjson(counts)) }}
{%- endmacro %}
