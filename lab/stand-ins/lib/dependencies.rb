# frozen_string_literal: true

require_relative 'log'
require_relative 'postgres'
require_relative 'redis'
require_relative 's3'

# What a stand-in needs from others. Every check really connects with what the chart's configuration gave; a thread for
# each repeats it, and readiness reports the last results. So a probe never hangs, and a dependency that goes away
# turns readiness off within a few seconds.
class Dependencies
  EVERY_SECONDS = 3
  # A check that has not come back for this long counts as failed, whatever it said before.
  STALE_SECONDS = 15

  Result = Struct.new(:problem, :at)

  # PostgreSQL, Redis and object storage of a Rails role.
  def self.of_rails
    new.tap do |needs|
      needs.add('db') { Postgres.check }
      needs.add('redis') { Redis.check(Settings.redis_url) }
      store = Settings.object_store
      needs.add('object_store') { S3.check(store[:connection], store[:bucket]) } if store
    end
  end

  def initialize
    @checks = {}
    @results = {}
  end

  def add(name, &check)
    @checks[name] = check
  end

  # Blocks until every check has passed once, saying who blocks; gives up after `seconds`.
  def wait(seconds = 600)
    deadline = now + seconds
    @checks.each_key do |name|
      last = nil
      until (problem = run(name)).nil?
        say "waiting for #{name}: #{problem}" if problem != last
        last = problem
        abort "gave up on #{name} after #{seconds} s: #{problem}" if now > deadline
        sleep 1
      end
    end
    self
  end

  # Goes on checking in the background; says when something changes.
  def watch
    @checks.each_key do |name|
      Thread.new do
        loop do
          before = @results[name]&.problem
          after = run(name)
          say "#{name}: #{after}" if after && before != after
          sleep EVERY_SECONDS
        end
      end
    end
    self
  end

  # Name → what is wrong with it. Empty means ready.
  def problems
    @checks.keys.filter_map do |name|
      result = @results[name]
      if result.nil? then [name, 'not checked yet']
      elsif now - result.at > STALE_SECONDS then [name, "no answer for #{(now - result.at).round} s"]
      elsif result.problem then [name, result.problem]
      end
    end.to_h
  end

  # GitLab's shape of /-/readiness.
  def report
    bad = problems
    checks = @checks.keys.to_h { |name| ["#{name}_check", [bad[name] ? {status: 'failed', message: bad[name]} : {status: 'ok'}]] }
    {status: bad.empty? ? 'ok' : 'failed', **checks}
  end

  private

  def run(name)
    answer = @checks.fetch(name).call
    say "#{name}: #{answer}" unless @results.key?(name) && @results[name].problem.nil?
    record(name, nil)
  rescue StandardError => e
    record(name, "#{e.class}: #{e.message.strip.lines.first&.strip}")
  end

  def record(name, problem)
    @results[name] = Result.new(problem, now)
    problem
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
