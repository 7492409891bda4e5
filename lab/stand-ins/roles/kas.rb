# frozen_string_literal: true

require_relative '../lib/dependencies'
require_relative '../lib/web'

# Stands in for gitlab-kas: reads its whole configuration, checks the secrets it names and stays ready while Redis lets it in.
Web.stop_on_signals
path = ARGV.filter_map { |argument| argument[/\A--configuration-file=(.*)/, 1] }.first or abort 'no --configuration-file given'
config = Render.yaml(File.read(path))

# kas refuses shared secrets of fewer than 32 bytes (websocket tokens: 72).
{config.dig('gitlab', 'authentication_secret_file') => 32,
 config.dig('private_api', 'listen', 'authentication_secret_file') => 32,
 config.dig('agent', 'kubernetes_api', 'websocket_token_secret_file') => 72}.each do |file, least|
  bytes = File.read(file).strip.unpack1('m').bytesize
  abort "#{file}: expected #{least} bytes of secret, found #{bytes}" if bytes < least
end

redis = config.fetch('redis')
needs = Dependencies.new
needs.add('redis') { Redis.check(redis.dig('server', 'address'), password: File.read(redis.fetch('password_file')).strip) }
needs.watch

def port(listener) = Integer(listener.fetch('address').to_s[/(\d+)\z/, 1])

observability = config.fetch('observability')
readiness = lambda do |_request|
  report = needs.report
  Web.json(report[:status] == 'ok' ? 200 : 503, report)
end
nothing = Web.text(404, 'kas stand-in')
[config.dig('agent', 'listen'), config.dig('agent', 'kubernetes_api', 'listen'), config.dig('api', 'listen'), config.dig('private_api', 'listen')].each do |listener|
  Web.serve(port(listener), {'*' => nothing})
end
Web.serve(port(observability.fetch('listen')), {
  "GET #{observability.dig('readiness_probe', 'url_path')}" => readiness,
  "GET #{observability.dig('liveness_probe', 'url_path')}" => Web.json(200, {status: 'ok'}),
  'GET /metrics' => Web::METRICS
}).join
