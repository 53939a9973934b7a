{% macro trigger_defaults() %}
    {#- What a blank in seeds/triggers.csv means, with the type of each setting. -#}
    {{ return({
        'enabled': ('boolean', 'true'),
        'api': ('string', 'MSG'),
        'acknowledgement_mode': ('string', 'CLIENT_ACKNOWLEDGE'),
        'processing_mode': ('string', 'serial'),
        'detect_duplicates': ('boolean', 'false'),
        'use_history': ('boolean', 'false'),
        'history_time_to_live_ms': ('bigint', '7200000'),
        'resolver': ('string', none),
        'suspend_on_preprocessing_error': ('boolean', 'false'),
        'resource_monitor': ('string', none),
        'max_retry_attempts': ('int', '0'),
        'retry_interval_ms': ('bigint', '10000'),
        'on_retry_failure': ('string', 'throw'),
        'execution_timeout_ms': ('bigint', '3600000'),
        'queue_capacity': ('bigint', '0'),
        'start_from': ('timestamp', none),
        'key': ('string', none),
    }) }}
{% endmacro %}
