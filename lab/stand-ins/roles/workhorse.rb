# frozen_string_literal: true

require 'net/http'
require_relative '../lib/dependencies'
require_relative '../lib/web'

# Stands in for gitlab-workhorse: takes everything on 8181 and hands it to the web service in the same pod.
Render.all
Web.stop_on_signals

abort 'the workhorse secret is empty' if File.read('/etc/gitlab/gitlab-workhorse/secret').strip.empty?

# workhorse-config.toml is a gomplate file; these two lines of it are plain once the secret is filled in.
config = File.read(Settings.path('workhorse-config.toml'))
url = config[/^URL = "(.*)"/, 1] or abort 'workhorse-config.toml names no Redis'
password = config[/^Password = (.*)$/, 1]&.then { |text| JSON.parse(text) }
needs = Dependencies.new
needs.add('redis') { Redis.check(url, password: password) }
needs.wait.watch

# Hop-by-hop headers (RFC 9110, 7.6.1) and what the HTTP library sets itself.
SKIPPED = %w[connection keep-alive te trailer transfer-encoding upgrade content-length accept-encoding].freeze

def forward(request, backend)
  headers = request.header.reject { |name, _| SKIPPED.include?(name) }.transform_values { |values| values.join(', ') }
  headers['cookie'] = request.header['cookie'].join('; ') if request.header['cookie']&.any?
  headers['x-forwarded-for'] ||= request.peeraddr[3]
  http = Net::HTTP.new(backend.host, backend.port)
  http.open_timeout = 2
  http.read_timeout = 30
  body = Web.body(request)
  body = nil if body.empty? && %w[GET HEAD].include?(request.request_method)
  answer = http.send_request(request.request_method, request.unparsed_uri, body, {**headers, 'accept-encoding' => 'identity'})
  kept = answer.to_hash.reject { |name, _| SKIPPED.include?(name) || name == 'server' || name == 'date' }
  [answer.code.to_i, kept.to_h { |name, values| [name, name == 'set-cookie' ? values : values.join(', ')] }, answer.body.to_s]
rescue SystemCallError, Timeout::Error, EOFError => e
  Web.text(502, "workhorse: #{e.class}")
end

backend = URI(ENV.fetch('GITLAB_WORKHORSE_AUTH_BACKEND', 'http://localhost:8080'))
Web.serve(9229, {'GET /metrics' => Web::METRICS})
Web.serve(Integer(ENV.fetch('GITLAB_WORKHORSE_LISTEN_PORT', '8181')), {'*' => ->(request) { forward(request, backend) }}).join
