{{ first_landed('resubmissions', 'resubmission_id') }}
