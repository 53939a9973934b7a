{% macro resubmit(
    delivery_id=none,
    trigger_name=none,
    service=none,
    cause=none,
    message_like=none,
    message_shape=none,
    since=none,
    until=none,
    document=none,
    force=false,
    reason=none,
    by=none,
    dry_run=false,
    really=false
) %}
    {#- Requests that one delivery, or the failed documents that match all given conditions, be
        taken again. Failed documents are counted and the first twenty listed; `really: true`
        requests them. -#}
    {%- do adapter.exactly_once.ensure_tables(graph) -%}
    {%- if trigger_name is not none -%}
        {%- do check_trigger(trigger_name, or_in=ref('trigger_states')) -%}
    {%- endif -%}
    {%- set conditions = [
        ('service = %s', service),
        ('cause = %s', cause),
        ('message like %s', message_like),
        ('message_shape = %s', message_shape),
        ('failed_at >= cast(%s as timestamp)', since),
        ('failed_at < cast(%s as timestamp)', until),
    ] | rejectattr(1, 'none') | list -%}
    {%- for name, value in [('force', force), ('really', really)] if value is not boolean -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ name ~ ' is ' ~ value ~ ': use true or false, without quotes'
        ) -%}
    {%- endfor -%}
    {%- for name, value in [('since', since), ('until', until)] if value is not none
        and run_query('select try_cast(' ~ sql_text(value) ~ ' as timestamp)').rows[0][0] is none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: ' ~ name ~ ' is ' ~ value ~ ': use a time such as 2026-01-31 12:00:00 (UTC)'
        ) -%}
    {%- endfor -%}
    {%- if delivery_id is not none and conditions -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: delivery_id names one delivery: leave out service, cause, message_like, '
            ~ 'message_shape, since and until, which name failed documents'
        ) -%}
    {%- elif delivery_id is not none -%}
        {%- set document = document if document is none or document is string else tojson(document)
        -%}
        {%- set id = sql_text(delivery_id) -%}
        {%- set rejected -%}
            select 1 from {{ ref('rejected_deliveries') }} where rejection_id = {{ id }}
            union all
            select 1 from {{ source('landing', 'rejected_landings') }} where rejection_id = {{ id }}
        {%- endset -%}
        {%- if trigger_name is none and run_query(rejected).rows | length == 0 -%}
            {%- do exceptions.raise_compiler_error(
                'exactly_once: no rejected row has the id ' ~ delivery_id
                ~ '; of a delivery name the trigger_name too'
            ) -%}
        {%- endif -%}
        {%- set wanted -%}
            select {{ id }} as delivery_id, {{ sql_text(trigger_name) }} as trigger_name
        {%- endset -%}
        {%- set requested = 'the request to take ' ~ delivery_id ~ ' again'
            ~ (' in ' ~ trigger_name if trigger_name else '') ~ ' has landed' -%}
    {%- elif document is not none -%}
        {%- do exceptions.raise_compiler_error(
            'exactly_once: document is the text of one delivery: name its delivery_id'
        ) -%}
    {%- else -%}
        {%- do check_is_made('failed_documents') -%}
        {%- set wanted -%}
            select * from {{ ref('failed_documents') }}
            where
                {{ 'true' if trigger_name is none else 'trigger_name = ' ~ sql_text(trigger_name) }}
                {%- for condition, value in conditions %}
                and {{ condition | format(sql_text(value)) }}
                {%- endfor %}
        {%- endset -%}
        {%- set documents = run_query('select count(*) from (' ~ wanted ~ ')').rows[0][0] -%}
        {%- set first_ones -%}
            select trigger_name, delivery_id, service, cause, failed_at, message
            from ({{ wanted }})
            order by failed_at, trigger_name, delivery_id
            limit 20
        {%- endset -%}
        {%- for row in run_query(first_ones).rows -%}
            {%- do print(row.values() | join(' | ')) -%}
        {%- endfor -%}
        {%- if documents > 20 -%}
            {%- do print('and ' ~ (documents - 20) ~ ' more, see failed_documents') -%}
        {%- endif -%}
        {%- set requested = 'requests to take ' ~ documents ~ ' documents again have landed' -%}
    {%- endif -%}
    {%- if documents == 0 -%}
        {%- do log(
            'exactly_once: nothing is resubmitted: no row of failed_documents meets all of these '
            ~ 'conditions',
            info=true,
        ) -%}
    {%- elif dry_run or (delivery_id is none and not really) -%}
        {%- do log(
            'exactly_once: nothing is resubmitted'
            ~ ('; add `really: true` to resubmit these ' ~ documents ~ ' documents'
            if documents else ''),
            info=true,
        ) -%}
    {%- else -%}
        {%- call statement('request') -%}
            insert into {{ source('landing', 'resubmissions') }} (
                resubmission_id, delivery_id, trigger_name, requested_at, requested_by, reason,
                document, force
            )
            select
                uuid(), delivery_id, trigger_name, current_timestamp(),
                {{ sql_text(by or env_var('USER', 'unknown')) }}, {{ sql_text(reason) }},
                {{ sql_text(document) }}, {{ 'true' if force else 'false' }}
            from ({{ wanted }})
        {%- endcall -%}
        {%- do log(
            'exactly_once: ' ~ requested ~ '; the next run takes or refuses them, see journal_log',
            info=true,
        ) -%}
    {%- endif -%}
{% endmacro %}
