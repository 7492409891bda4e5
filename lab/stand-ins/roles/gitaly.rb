# frozen_string_literal: true

require_relative '../lib/dependencies'
require_relative '../lib/grpc_health'
require_relative '../lib/token_memory'
require_relative '../lib/web'

# Stands in for Gitaly: serves no repository, but is healthy only while it can write to its volume with the token that
# the volume knows.
Web.stop_on_signals
Render.all
STORAGE = '/home/git/repositories'

def secret(path)
  File.read(path).strip.tap { |text| abort "#{path} is empty" if text.empty? }
end

token = secret('/etc/gitlab-secrets/gitaly/gitaly_token')
secret('/etc/gitlab-secrets/shell/.gitlab_shell_secret')
begin
  say "token: #{TokenMemory.new(STORAGE).check(token)}"
rescue TokenMemory::Changed => e
  abort e.message
end

needs = Dependencies.new
needs.add('storage') do
  beat = File.join(STORAGE, '.stand-in', 'heartbeat')
  File.write(beat, Time.now.utc.to_s)
  "#{STORAGE} can be written"
end
needs.wait.watch

Web.serve(9236, {'GET /metrics' => Web::METRICS})
GrpcHealth.serve(8075) { needs.problems.empty? }
