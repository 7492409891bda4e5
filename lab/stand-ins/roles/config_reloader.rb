# frozen_string_literal: true

require 'digest'
require 'net/http'
require_relative '../lib/web'

# Stands in for prometheus-config-reloader: watches a folder and tells Prometheus to read its configuration again.
EVERY_SECONDS = 5
Web.stop_on_signals
options = ARGV.to_h { |argument| argument.delete_prefix('--').split('=', 2) }
folder = options.fetch('watched-dir') { abort 'no --watched-dir given' }
reload = URI(options.fetch('reload-url') { abort 'no --reload-url given' })
port = Integer(options.fetch('listen-address', '0.0.0.0:8080')[/(\d+)\z/, 1])

def fingerprint(folder)
  Digest::SHA256.hexdigest(Dir.children(folder).sort.filter_map { |name| File.join(folder, name).then { |path| File.read(path) if File.file?(path) } }.join("\0"))
end

loaded = nil
Thread.new do
  loop do
    current = fingerprint(folder)
    if current != loaded
      answer = Net::HTTP.post(reload, '')
      say "#{reload}: #{answer.code}"
      loaded = current if answer.code == '200'
    end
  rescue SystemCallError => e
    say "#{reload}: #{e.class}"
  ensure
    sleep EVERY_SECONDS
  end
end

healthy = ->(_request) { File.readable?(folder) ? Web.text(200, 'ok') : Web.text(503, "#{folder} cannot be read") }
Web.serve(port, {'GET /healthz' => healthy, 'GET /metrics' => Web::METRICS}).join
