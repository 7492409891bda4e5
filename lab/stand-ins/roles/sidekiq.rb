# frozen_string_literal: true

require_relative '../lib/dependencies'
require_relative '../lib/web'

# Stands in for gitlab-sidekiq: it works on nothing, but is ready only while it could.
Render.all
Web.stop_on_signals
needs = Dependencies.of_rails.watch

readiness = lambda do |_request|
  report = needs.report
  Web.json(report[:status] == 'ok' ? 200 : 503, report)
end
Web.serve(3808, {'GET /readiness' => readiness, 'GET /liveness' => Web.json(200, {status: 'ok'})})
Web.serve(3807, {'GET /metrics' => Web::METRICS}).join
