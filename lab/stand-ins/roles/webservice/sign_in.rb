# frozen_string_literal: true

require_relative '../../lib/accounts'
require_relative '../../lib/session'
require_relative '../../lib/web'

# The sign-in page and what a signed-in session can see. As in Rails, a form counts only with the token of its session.
module SignIn
  PAGE = <<~HTML
    <!DOCTYPE html>
    <html><head><title>Sign in · GitLab (stand-in)</title><meta name="csrf-token" content="%<token>s"></head>
    <body><h1>GitLab stand-in</h1>%<note>s
    <form action="/users/sign_in" method="post"><input type="hidden" name="authenticity_token" value="%<token>s">
    <input name="user[login]" autocomplete="username"><input type="password" name="user[password]">
    <button>Sign in</button></form></body></html>
  HTML

  def self.show(request, status: 200, note: '')
    token = Session.read(request)['csrf'] || SecureRandom.hex(16)
    Web.html(status, format(PAGE, token: token, note: note), 'set-cookie' => Session.write(csrf: token))
  end

  def self.submit(request)
    form = Web.parameters(request)
    expected = Session.read(request)['csrf']
    unless expected && OpenSSL.secure_compare(form['authenticity_token'].to_s, expected)
      return Web.html(422, '<p>The form has no valid authenticity_token for its session.</p>')
    end

    user = Accounts.find(form['user[login]'].to_s)
    if user && Accounts.valid?(form['user[password]'].to_s, user['encrypted_password'])
      Web.redirect('/', 'set-cookie' => Session.write(user: user['username'], csrf: SecureRandom.hex(16)))
    else
      show(request, status: 422, note: '<p>Invalid login or password.</p>')
    end
  end

  def self.profile(request)
    user = Session.read(request)['user'] or return Web.redirect('/users/sign_in')
    Web.html(200, "<h1>#{user}</h1>")
  end

  ROUTES = {
    'GET /users/sign_in' => ->(request) { show(request) },
    'POST /users/sign_in' => ->(request) { submit(request) },
    'GET /-/profile' => ->(request) { profile(request) }
  }.freeze
end
