{{ config(materialized='ephemeral') }}
{%- set facts = queue_facts() %}
-- facts that decide which parts of the SQL this run needs
-- depends_on: {{ ref('triggers_this_run') }}
-- depends_on: {{ ref('returning_this_run') }}
with

landed as (

    select
        stg_deliveries.*,
        transports.api as transport_api
    from {{ ref('stg_deliveries') }} as stg_deliveries
    left join {{ typed_seed('transports') }} as transports
        on stg_deliveries.transport = transports.transport

),

checked as (

    select
        *,
        {{ contract_breach('transport_api is not null') }} as breach
    from landed

),

{% if facts.has_repeated -%}
    landed_earlier as (

        select
            earlier.delivery_id,
            min_by(
                {{ delivery_content() }},
                struct({{ order_of_landing('earlier') }})
            ) as content
        from {{ accepted_deliveries('consumed') }} as earlier
        left semi join landed on earlier.delivery_id = landed.delivery_id
        where earlier.landing_rank < 2 and {{ on_days('earlier.received_at', facts.earlier_days) }}
        group by earlier.delivery_id

    ),

    -- decided or waiting deliveries, even if their landed rows have been removed since
    taken_earlier as (

        select
            delivery_id,
            collect_set(received_at) as received_at
        from {{ taken_deliveries(facts.earlier_days) }}
        group by delivery_id

    ),

    with_content as (

        select
            *,
            {{ delivery_content() }} as content
        from {{ in_order_of_commits('checked', 'deliveries', 'unconsumed') }}

    ),

    ranked as (

        select
            *,
            row_number() over first_landed as arrival,
            first(content) over first_landed as first_content
        from with_content
        window first_landed as (
            partition by delivery_id, breach is null
            order by landed_commit, landed_file, landed_position
        )

    ),

    final as (

        select
            ranked.* except (arrival, first_content, content, breach, landed_commit),
            case
                when ranked.breach is not null then ranked.breach
                when landed_earlier.content is not null or ranked.arrival > 1
                    then if(
                        coalesce(landed_earlier.content, ranked.first_content) = ranked.content,
                        'REPEATED',
                        'CONFLICTING'
                    )
                when array_contains(taken_earlier.received_at, ranked.received_at) then 'REPEATED'
                when taken_earlier.delivery_id is not null then 'CONFLICTING'
            end as rejected_because
        from ranked
        left join landed_earlier on ranked.delivery_id = landed_earlier.delivery_id
        left join taken_earlier on ranked.delivery_id = taken_earlier.delivery_id

    )
{%- else -%}
final as (

    select
        * except (breach),
        breach as rejected_because
    from checked

)
{%- endif %}

select * from final
