# frozen_string_literal: true

require_relative '../../lib/accounts'
require_relative '../../lib/registry_token'
require_relative '../../lib/web'

# /jwt/auth: the token realm that the chart writes into the registry's configuration.
module RegistryAuth
  SERVICE = 'container_registry'

  def self.issue(request)
    query = URI.decode_www_form(request.query_string.to_s)
    service = query.assoc('service')&.last
    return Web.json(404, {message: "unknown service #{service.inspect}"}) unless service == SERVICE

    user = nil
    if (given = Web.basic(request))
      user = Accounts.login(*given) or return denied(401, 'UNAUTHORIZED', 'HTTP Basic: Access denied')
    end
    scopes = query.filter_map { |name, value| value if name == 'scope' }.flat_map(&:split)
    access = RegistryToken.granted(scopes, admin: user&.fetch('admin') == 't')
    return denied(403, 'DENIED', 'access forbidden') if user.nil? && access.empty?

    token = RegistryToken.for(access, subject: user ? user['username'] : '', service: service)
    Web.json(200, {token: token, expires_in: RegistryToken::LIFETIME_SECONDS, issued_at: Time.now.utc.strftime('%FT%TZ')})
  end

  def self.denied(status, code, message) = Web.json(status, {errors: [{code: code, message: message}]})

  ROUTES = {
    'GET /jwt/auth' => ->(request) { issue(request) },
    # GitLab answers 404 to the OAuth form of the question; clients then ask again with GET.
    'POST /jwt/auth' => [404, {'content-type' => 'text/plain'}, '']
  }.freeze
end
