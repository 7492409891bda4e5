# frozen_string_literal: true

require_relative '../lib/dependencies'
require_relative '../lib/web'

# Stands in for gitlab-exporter. The chart's probes only look for a process of that name, so the process takes the name
# once it has connected to both of its sources, and gives up where it never does.
CONNECT_SECONDS = 25
Web.stop_on_signals
Render.all
probes = Render.yaml(File.read(Settings.path('gitlab-exporter.yml')))
database = probes.dig('probes', 'db_common', 'opts', 'connection_string')
redis_url = probes.dig('probes', 'sidekiq', 'opts', 'redis_url')

needs = Dependencies.new
needs.add('db') do
  connection = PG.connect("#{database} connect_timeout=#{Postgres::CONNECT_SECONDS}")
  connection.exec('select 1').getvalue(0, 0)
ensure
  connection&.close
end
needs.add('redis') { Redis.check(redis_url) }
needs.wait(CONNECT_SECONDS).watch
Process.setproctitle('gitlab-exporter')

metrics = ->(_request) { [200, Web::METRICS[1], "stand_in_up #{needs.problems.empty? ? 1 : 0}\n"] }
Web.serve(probes.dig('server', 'listen_port'), {'*' => metrics}).join
