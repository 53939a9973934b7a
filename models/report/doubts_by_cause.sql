with

in_doubt as (

    select
        *,
        -- a rule about keys covers missing and too long keys: the cause says which
        if(decided_by = 'ID' and document_key is null, 'MISSING', 'TOO_LONG') as key_state,
        case
            when decided_at > current_timestamp() - interval 1 hour then 1
            when decided_at > current_timestamp() - interval 1 day then 2
            when decided_at > current_timestamp() - interval 7 days then 3
            else 4
        end as age
    from {{ ref('in_doubt_documents') }}

),

counted as (

    select
        trigger_name,
        rule_id,
        decided_by,
        age,
        key_state,
        cast(null as string) as resolver_result,
        cast(null as string) as message,
        count(*) as documents,
        count_if(looked_at is null) as not_looked_at,
        min(decided_at) as first_decided_at,
        max(decided_at) as last_decided_at
    from in_doubt
    group by trigger_name, rule_id, decided_by, age, key_state

),

final as (

    select
        -- what
        trigger_name,
        rule_id,
        {{ rule_in_words('counted') }} as cause,
        decided_by,
        age as age_rank,
        element_at(
            array('less than an hour', 'less than a day', 'less than a week', 'a week or more'), age
        ) as age,

        -- counts
        documents,
        not_looked_at,

        -- times
        first_decided_at,
        last_decided_at,

        -- the query for the counted rows
        concat(
            'select * from {{ ref("in_doubt_documents") }} where trigger_name = ',
            {{ as_literal('trigger_name') }},
            ' and rule_id = \'', rule_id, '\'',
            if(
                decided_by = 'ID',
                concat(
                    ' and document_key is ', if(key_state = 'MISSING', 'null', 'not null')
                ),
                ''
            ),
            ' and decided_at between timestamp \'',
            {{ time_in_words('first_decided_at', '.SSSSSS') }},
            '\' and timestamp \'',
            {{ time_in_words('last_decided_at', '.SSSSSS') }},
            '\''
        ) as rows_behind
    from counted

)

select * from final
