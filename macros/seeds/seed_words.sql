{% macro seed_words() %}
    {#- The settings of seeds that allow certain words only, and how the project spells these. -#}
    {{ return({
        'api': ['MSG', 'JMS'],
        'acknowledgement_mode': [
            'CLIENT_ACKNOWLEDGE', 'TRANSACTED', 'AUTO_ACKNOWLEDGE', 'DUPS_OK_ACKNOWLEDGE'
        ],
        'processing_mode': ['serial', 'concurrent'],
        'on_retry_failure': ['throw', 'suspend'],
    }) }}
{% endmacro %}
