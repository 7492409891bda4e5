# frozen_string_literal: true

require_relative '../lib/dependencies'
require_relative '../lib/schema'

# /scripts/wait-for-deps: blocks until everything the configuration (rendered by the entry point) names lets us in and the schema is there.
needs = Dependencies.of_rails
needs.add('migrations') { Schema.check } unless ENV['BYPASS_SCHEMA_VERSION'] == 'true'
needs.wait
say 'all dependencies are there'
