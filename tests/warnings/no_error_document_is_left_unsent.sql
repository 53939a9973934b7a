-- The publisher of a document that has failed does not know of it until its error document is sent.
{{ nothing_to_do('UNSENT_ERRORS') }}
