{% materialization seed, adapter='spark' %}
    {#- The seeds of the package are tables with the checksum of their CSV. dbt lets a package
        replace one of its own materializations only where the project says so. -#}
    {{ return(exactly_once.materialization_seed_spark()) }}
{% endmaterialization %}
