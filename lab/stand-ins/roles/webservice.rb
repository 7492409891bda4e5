# frozen_string_literal: true

require_relative '../lib/dependencies'
require_relative '../lib/rails_secret'
require_relative '../lib/schema'
require_relative '../lib/web'
require_relative 'webservice/registry_auth'
require_relative 'webservice/runner_api'
require_relative 'webservice/sign_in'

# Stands in for gitlab-webservice: health, sign-in, the registry's tokens, the runners' API.
Render.all
# The blackout: no longer ready, so no new clients come, but those still on their way are answered.
Web.stop_on_signals(after: Integer(ENV.fetch('SHUTDOWN_BLACKOUT_SECONDS', '10')))
VERSION = {version: '19.1.1', revision: 'stand-in'}.freeze

needs = Dependencies.of_rails
needs.add('migrations') { Schema.check }
needs.add('rails_secret') { RailsSecret.check }
needs.watch

readiness = lambda do |_request|
  report = needs.report
  Web.json(report[:status] == 'ok' && !Web.stopping? ? 200 : 503, report)
end
version = ->(request) { RunnerApi.caller_of(request) ? Web.json(200, VERSION) : Web.json(401, {message: '401 Unauthorized'}) }

Web.serve(Integer(ENV.fetch('INTERNAL_PORT', '8080')), {
  'GET /-/health' => [200, {'content-type' => 'text/plain'}, 'GitLab OK'],
  'GET /-/readiness' => readiness,
  'GET /-/liveness' => Web.json(200, {status: 'ok'}),
  'GET /-/metrics' => Web::METRICS,
  'GET /' => ->(request) { Web.redirect(Session.read(request)['user'] ? '/-/profile' : '/users/sign_in') },
  'GET /api/v4/version' => version,
  'POST /api/v4/internal/secrets_manager/audit_logs' => [204, {}, ''],
  **SignIn::ROUTES, **RegistryAuth::ROUTES, **RunnerApi::ROUTES
})
Web.serve(8083, {'GET /metrics' => Web::METRICS}).join
