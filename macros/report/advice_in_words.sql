{% macro advice_in_words(f) -%}
    {#- Which setting would have changed the decision. `f` has rule_id, the settings that the
        trigger has now, and the facts of the delivery. -#}
    {%- set rule = 'substring(' ~ f ~ '.rule_id, 1, 3)' -%}
    {%- set answer = 'substring(' ~ f ~ '.rule_id, 4, 1)' -%}
    concat_ws(
        '; ',
        if(
            ({{ rule }} = 'R02' and {{ f }}.detect_duplicates)
            or (
                {{ rule }} between 'R03' and 'R16'
                and (
                    not {{ f }}.detect_duplicates
                    or {{ f }}.use_history != ({{ rule }} > 'R06')
                )
            )
            or ({{ rule }} in ('R04', 'R05', 'R10', 'R12', 'R15') and {{ f }}.resolver is not null)
            or ({{ rule }} in ('R06', 'R11', 'R13', 'R16') and {{ f }}.resolver is null),
            'the trigger has other settings by now, see seeds/triggers.csv',
            null
        ),
        case
            when {{ rule }} = 'R01' and not {{ f }}.guaranteed
                then 'none of the trigger: its sender would have to make it guaranteed'
            when {{ rule }} = 'R01'
                then 'acknowledgement_mode: CLIENT_ACKNOWLEDGE or TRANSACTED would have it checked'
            when {{ rule }} = 'R02' then 'detect_duplicates: true would have it checked'
            when {{ rule }} = 'R03'
                then 'use_history: true would look for its key instead of trusting the count'
            when {{ rule }} = 'R04'
                then concat(
                    'use_history: true would look for its key, a resolver would be asked; ',
                    'without either every copy of it is NEW'
                )
            when {{ rule }} = 'R05'
                then concat(
                    'use_history: true would decide by what was processed; ',
                    'a resolver would be asked'
                )
            when {{ rule }} = 'R06' and {{ answer }} = 'd'
                then concat(
                    'suspend_on_preprocessing_error: false and on_retry_failure: throw would leave ',
                    'it IN_DOUBT instead; use_history: true would decide by what was processed'
                )
            when {{ rule }} = 'R06' and {{ answer }} = 'e'
                then concat(
                    'suspend_on_preprocessing_error: true would have it wait for an answer; ',
                    'use_history: true would decide by what was processed'
                )
            when {{ rule }} in ('R06', 'R11', 'R13', 'R16') and {{ answer }} = 'f'
                then 'none: the resolver itself is to be mended'
            when {{ rule }} in ('R06', 'R11', 'R13', 'R16') and {{ answer }} = 'g'
                then 'none: the resolver has to answer NEW, DUPLICATE or IN_DOUBT'
            when {{ rule }} = 'R06'
                then 'use_history: true would decide by what was processed'
            when {{ rule }} = 'R07'
                then concat(
                    'history_time_to_live_ms, where a copy came more than ',
                    {{ duration_in_words(f ~ '.history_time_to_live_ms') }},
                    ' before it: with a longer one it would be a DUPLICATE'
                )
            when {{ rule }} in ('R08', 'R09')
                then concat(
                    'none should: it came within ',
                    {{ duration_in_words(f ~ '.history_time_to_live_ms') }},
                    ' (history_time_to_live_ms) of a copy; where both are different documents, ',
                    'their sender gives them one id'
                )
            when {{ rule }} = 'R10' then 'a resolver would be asked whether it was processed'
            when {{ rule }} in ('R11', 'R13') and {{ answer }} = 'd'
                then concat(
                    'suspend_on_preprocessing_error: false and on_retry_failure: throw would leave ',
                    'it IN_DOUBT instead'
                )
            when {{ rule }} in ('R11', 'R13') and {{ answer }} = 'e'
                then 'suspend_on_preprocessing_error: true would have it wait for an answer'
            when {{ rule }} = 'R11' then 'none: history could not tell and the resolver has answered'
            when {{ rule }} = 'R12'
                then concat(
                    'a resolver would be asked; history could be, if its sender gave it an id of ',
                    'at most 96 characters'
                )
            when {{ rule }} = 'R13'
                then concat(
                    'none: history could be asked if its sender gave it an id of at most 96 ',
                    'characters'
                )
            when {{ rule }} = 'R14'
                then if(
                    {{ f }}.resolver is null,
                    concat(
                        'suspend_on_preprocessing_error: false and on_retry_failure: throw would ',
                        'leave it IN_DOUBT instead'
                    ),
                    concat(
                        'suspend_on_preprocessing_error: false and on_retry_failure: throw would ',
                        'have the resolver asked instead'
                    )
                )
            when {{ rule }} = 'R15'
                then concat(
                    'a resolver would be asked; suspend_on_preprocessing_error: true would have it ',
                    'wait while the operator says history_unavailable; a longer ',
                    'allowed_lateness_ms keeps entries for deliveries that land late'
                )
            when {{ rule }} = 'R16'
                then concat(
                    'suspend_on_preprocessing_error: true would have it wait while the operator ',
                    'says history_unavailable; a longer allowed_lateness_ms keeps entries for ',
                    'deliveries that land late'
                )
            when {{ f }}.rule_id = 'OPERATOR' then 'none: an operator has decided'
            when {{ f }}.rule_id = 'MAX_RECOVERIES'
                then concat(
                    'a longer execution_timeout_ms, if the service was at work all the time; ',
                    'the variable max_recoveries'
                )
            else 'see what it waits for'
        end
    )
{%- endmacro %}
