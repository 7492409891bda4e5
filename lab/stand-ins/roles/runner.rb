# frozen_string_literal: true

require 'fileutils'
require 'json'
require 'net/http'
require 'uri'
require_relative '../lib/log'

# Stands in for gitlab-runner: register, verify, run and unregister as the runner chart's scripts call them. It runs no
# job; it asks for one every few seconds, which is what keeps a runner online.
class Runner
  CONFIG = File.join(ENV.fetch('HOME', '/home/gitlab-runner'), '.gitlab-runner', 'config.toml')
  AUTHENTICATION_PREFIX = 'glrt-'
  SECONDS = 5

  def register(arguments)
    template = arguments.each_cons(2).find { |name, _| name == '--template-config' }&.last
    url = ENV.fetch('CI_SERVER_URL', '')
    token = [ENV.fetch('CI_SERVER_TOKEN', ''), ENV.fetch('REGISTRATION_TOKEN', '')].find { |text| !text.empty? }
    abort 'PANIC: CI_SERVER_URL is not set' if url.empty?
    abort 'PANIC: neither CI_SERVER_TOKEN nor REGISTRATION_TOKEN is set' unless token
    unless token.start_with?(AUTHENTICATION_PREFIX)
      status = call(url, Net::HTTP::Post, 'runners', token: token)
      abort "ERROR: Registering runner... failed: status=#{status} (registration tokens are gone)"
    end

    status = call(url, Net::HTTP::Post, 'runners/verify', token: token)
    abort "ERROR: Verifying runner... failed: status=#{status}" unless status == '200'
    say 'Verifying runner... is valid'
    write(url, token, template)
    say 'Runner registered successfully.'
  end

  def verify
    url, token = configured
    status = call(url, Net::HTTP::Post, 'runners/verify', token: token)
    abort "ERROR: Verifying runner... #{status == '403' ? 'is not valid' : "failed: status=#{status}"}" unless status == '200'
    say 'Verifying runner... is valid'
  end

  def run
    url, token = configured
    interval = Integer(File.read(CONFIG)[/^check_interval = (\d+)/, 1] || 3)
    say "Starting multi-runner from #{CONFIG}, asking #{url} every #{interval} s"
    %w[TERM INT QUIT].each { |signal| trap(signal) { exit!(0) } }
    last = nil
    loop do
      status = call(url, Net::HTTP::Post, 'jobs/request', token: token)
      say "Checking for jobs... #{status == '204' ? 'none' : status}" if status != last
      last = status
      sleep interval
    end
  end

  # A runner that was made on the server only takes its machine off the list.
  def unregister
    url, token = configured
    status = call(url, Net::HTTP::Delete, 'runners/managers', token: token)
    abort "ERROR: Unregistering runner... failed: status=#{status}" unless status == '204'
    FileUtils.rm_f(CONFIG)
    say 'Unregistering runner... succeeded'
  end

  private

  # The status as text, or why there was none.
  def call(url, kind, path, body)
    uri = URI("#{url.chomp('/')}/api/v4/#{path}")
    request = kind.new(uri, 'content-type' => 'application/json')
    request.body = JSON.generate(body)
    Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https', open_timeout: SECONDS, read_timeout: SECONDS) { |http| http.request(request) }.code
  rescue SystemCallError, SocketError, Timeout::Error, EOFError => e
    e.class.to_s
  end

  def configured
    text = File.exist?(CONFIG) ? File.read(CONFIG) : ''
    token = text[/^  token = "(.*)"/, 1] or abort "no runner is registered in #{CONFIG}"
    [text[/^  url = "(.*)"/, 1], token]
  end

  def write(url, token, template)
    section = template ? File.read(template).sub(/\A\s*\[\[runners\]\]\n/, '') : ''
    FileUtils.mkdir_p(File.dirname(CONFIG))
    File.open(CONFIG, 'a', 0o600) { |file| file.write("\n[[runners]]\n  url = #{url.to_json}\n  token = #{token.to_json}\n  executor = \"kubernetes\"\n#{section}") }
  end
end

command, *arguments = ARGV
case command
when 'register' then Runner.new.register(arguments)
when 'verify' then Runner.new.verify
when 'run' then Runner.new.run
when 'unregister' then Runner.new.unregister
else abort "gitlab-runner stand-in: unknown command #{command.inspect} (register, verify, run, unregister)"
end
