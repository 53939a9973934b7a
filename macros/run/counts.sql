{% macro queue_counts(queue=none) -%}
    {#- A relation of the number of this run's deliveries by outcome, as note_queue has counted
        them. queue: trigger_queue, to count it now, as is done outside of a run. -#}
    {%- if current_run() and queue is none -%}
        {{ current_run().counts.trigger_queue.relation }}
    {%- else -%}
        (
            select
                queue_outcome,
                origin,
                had_waited,
                examined,
                count(*) as deliveries,
                cast(max(landed_received_at) as string) as latest
            from {{ queue or ref('trigger_queue') }}
            group by queue_outcome, origin, had_waited, examined
        )
    {%- endif -%}
{%- endmacro %}

{% macro decision_counts(decisions=none) -%}
    {#- A relation of the number of this run's documents by decision, as note_decisions has counted
        them. decisions: the model, to count it now, as is done outside of a run. -#}
    {%- if current_run() and decisions is none -%}
        {{ current_run().counts.decisions.relation }}
    {%- else -%}
        {%- set columns = [
            'trigger_name', 'status', 'is_decided', 'rule_id', 'decided_by', 'key_state',
            'redelivery', 'is_opened', 'adds_to_history',
        ] | join(', ') -%}
        (
            select
                {{ columns }},
                count(*) as documents
            from (
                select
                    *,
                    {{ is_executed() }} and service is not null as is_opened
                from {{ decisions or ref('decisions') }}
            )
            group by {{ columns }}
        )
    {%- endif -%}
{%- endmacro %}

{% macro counts_as_json(relation) -%}
    {#- A query of one text: the counts of queue_counts or decision_counts, and their type. -#}
    select
        to_json(struct(
            collect_list(struct(*)) as counts,
            typeof(collect_list(struct(*))) as type
        ))
    from {{ relation }}
{%- endmacro %}

{% macro note_counts(model_name, text) -%}
    {#- Keeps such counts for the rest of the run, as a list and as a relation that reads no table;
        returns the list. text: see counts_as_json. -#}
    {%- set found = fromjson(text) -%}
    {%- do current_run().counts.update({
        model_name: {
            'rows': found.counts,
            'relation':
                'inline(from_json(' ~ sql_text(tojson(found.counts)) ~ ", '" ~ found.type ~ "'))",
        },
    }) -%}
    {{ return(found.counts) }}
{%- endmacro %}
