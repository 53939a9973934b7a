{% materialization incremental, adapter='spark', supported_languages=['sql', 'python'] %}
    {#- The ledgers of the package are incremental models; all others are dbt-spark's still. dbt
        lets a package replace one of its own materializations only where the project says so. -#}
    {{ return(exactly_once.materialization_incremental_spark()) }}
{% endmaterialization %}
