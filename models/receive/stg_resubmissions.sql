-- other writers can append a time that no tool can read: it becomes null, and the clock of the run
-- counts instead
select
    * except (requested_at),
    if(year(requested_at) between 1 and 9999, requested_at, null) as requested_at
from ({{ first_landed('resubmissions', 'resubmission_id') }})
