# frozen_string_literal: true

require 'time'
require_relative '../../lib/accounts'
require_relative '../../lib/runners'
require_relative '../../lib/web'

# The part of /api/v4 that runners, and those who set them up, call.
module RunnerApi
  FORBIDDEN = Web.json(403, {message: '403 Forbidden'}).freeze
  UNAUTHORIZED = Web.json(401, {message: '401 Unauthorized'}).freeze
  GONE = Web.json(410, {message: '410 Gone - registration tokens are not supported; create the runner first and use its authentication token'}).freeze

  # Who asks: by PRIVATE-TOKEN, Bearer token or a Basic password. nil for nobody.
  def self.caller_of(request)
    token = request['private-token'] || request['authorization'].to_s[/\ABearer (.+)/, 1]
    return Accounts.by_token(token) if token

    given = Web.basic(request)
    given && Accounts.login(*given)
  end

  def self.as_admin(request)
    user = caller_of(request) or return UNAUTHORIZED
    user['admin'] == 't' ? yield : FORBIDDEN
  end

  def self.as_runner(request)
    runner = Runners.by_token(Web.parameters(request)['token']) or return FORBIDDEN
    yield runner
  end

  def self.verify(request)
    as_runner(request) { |runner| Web.json(200, {id: runner['id'].to_i, token: runner['token'], token_expires_at: nil}) }
  end

  # There is never a job: contact is noted, the answer is 204.
  def self.request_job(request)
    as_runner(request) { |runner| Runners.contacted(runner['id']) && [204, {}, ''] }
  end

  def self.delete(request) = as_runner(request) { |runner| Runners.delete(runner['id']) && [204, {}, ''] }

  # A runner made on the server stays when one of its machines takes its leave.
  def self.delete_manager(request) = as_runner(request) { |runner| Runners.forget_contact(runner['id']) && [204, {}, ''] }

  def self.create(request)
    as_admin(request) do
      given = Web.parameters(request)
      runner = Runners.create(runner_type: given['runner_type'].to_s, description: given['description'],
                              tag_list: given['tag_list'], run_untagged: given.fetch('run_untagged', true).to_s != 'false')
      Web.json(201, {id: runner['id'].to_i, token: runner['token'], token_expires_at: nil})
    rescue ArgumentError => e
      Web.json(400, {error: e.message})
    end
  end

  def self.list(request)
    as_admin(request) do
      Web.json(200, Runners.with_status.map do |row|
        {id: row['id'].to_i, description: row['description'], runner_type: row['runner_type'], is_shared: row['runner_type'] == 'instance_type',
         active: true, paused: false, online: row['status'] == 'online', status: row['status'],
         created_at: time(row['created_at']), contacted_at: time(row['contacted_at'])}
      end)
    end
  end

  # PostgreSQL's text as GitLab's API writes times.
  def self.time(text) = text && Time.parse(text).utc.iso8601(3)

  ROUTES = {
    'POST /api/v4/runners' => GONE,
    'DELETE /api/v4/runners' => ->(request) { delete(request) },
    'POST /api/v4/runners/verify' => ->(request) { verify(request) },
    'DELETE /api/v4/runners/managers' => ->(request) { delete_manager(request) },
    'GET /api/v4/runners/all' => ->(request) { list(request) },
    'POST /api/v4/user/runners' => ->(request) { create(request) },
    'POST /api/v4/jobs/request' => ->(request) { request_job(request) }
  }.freeze
end
