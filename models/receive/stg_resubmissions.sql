-- other writers can append a time that no tool shows or reads: it is that of the run then
select
    * except (requested_at),
    if(year(requested_at) between 1 and 9999, requested_at, null) as requested_at
from ({{ first_landed('resubmissions', 'resubmission_id') }})
